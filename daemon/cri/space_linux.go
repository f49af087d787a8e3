package cri

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// statfs measures the file system of a path. The kernel answers for an overlay with the file system of its upper layer.
func statfs(path string) (space Space, overlay bool, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, false, fmt.Errorf("statfs: %w", err)
	}
	block := uint64(s.Bsize)
	if s.Frsize > 0 {
		block = uint64(s.Frsize)
	}
	overlay = int64(s.Type) == unix.OVERLAYFS_SUPER_MAGIC //nolint:unconvert // it has 32 bits on other machines
	return Space{
		Capacity: s.Blocks * block, Available: s.Bavail * block, Inodes: s.Files, FreeInodes: s.Ffree,
	}, overlay, nil
}
