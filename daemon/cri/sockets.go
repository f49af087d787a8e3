package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// sockets are the usual places, below the directory for sockets.
func sockets() []string {
	return []string{
		"containerd.sock", "containerd/containerd.sock",
		"crio.sock", "crio/crio.sock",
		"cri-dockerd.sock", "cri-dockerd/cri-dockerd.sock",
		"k3s/containerd/containerd.sock", "k3s/cri-dockerd/cri-dockerd.sock", // k3s and RKE2
		"k0s/containerd.sock",
	}
}

// lookUp returns what is there of the sockets, each once.
func (s Search) lookUp() ([]candidate, error) {
	if s.Root == "" {
		return nil, errors.New("detect container runtimes: want a directory to look in")
	}
	root, err := filepath.Abs(s.Root)
	if err != nil {
		return nil, fmt.Errorf("detect container runtimes: %w", err)
	}
	paths := sockets()
	if s.Socket != "" {
		if !filepath.IsLocal(s.Socket) {
			return nil, fmt.Errorf("socket %q: want a path below %s", s.Socket, root)
		}
		paths = []string{s.Socket}
	}
	var candidates []candidate
	var seen []fs.FileInfo
	for _, path := range paths {
		path = filepath.Join(root, path)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		c := candidate{endpoint: unixScheme + "://" + path}
		switch {
		case err != nil:
			c.reason = err
		case info.Mode().Type() != fs.ModeSocket:
			c.reason = fmt.Errorf("%s is not a socket", path)
		case known(seen, info):
			continue
		default:
			seen = append(seen, info)
		}
		candidates = append(candidates, c)
	}
	return candidates, nil
}

func known(seen []fs.FileInfo, info fs.FileInfo) bool {
	for _, other := range seen {
		if os.SameFile(other, info) {
			return true
		}
	}
	return false
}
