package cri

// candidates is the one pipe that there is. Whether somebody listens there, opening it tells.
func (Search) candidates() ([]candidate, error) {
	return []candidate{{endpoint: "npipe://./pipe/containerd-containerd"}}, nil
}
