package cri

// candidates returns the pipe of containerd. Open reports whether a process listens there.
func (Search) candidates() ([]candidate, error) {
	return []candidate{{endpoint: "npipe://./pipe/containerd-containerd"}}, nil
}
