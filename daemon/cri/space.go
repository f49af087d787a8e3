package cri

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Space is the size of a file system that has images.
type Space struct {
	// Capacity is the size in bytes, Available what is left to the runtime: the share that is reserved for root is not.
	Capacity, Available uint64
	// Inodes are all inodes, FreeInodes those that no file has. Both are zero where the file system has no bound of
	// inodes.
	Inodes, FreeInodes uint64
}

// stores are where a runtime keeps images, as paths of the node.
type stores struct {
	paths []string
	// split says that the files of containers are on another file system than the images.
	split bool
}

func storesOf(info *criv1.ImageFsInfoResponse) stores {
	s := stores{paths: mountpoints(info.GetImageFilesystems())}
	containers := mountpoints(info.GetContainerFilesystems())
	s.split = len(containers) > 0 && !slices.ContainsFunc(containers, func(path string) bool {
		return slices.Contains(s.paths, path)
	})
	return s
}

func mountpoints(all []*criv1.FilesystemUsage) []string {
	var paths []string
	for _, f := range all {
		if path := f.GetFsId().GetMountpoint(); path != "" {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// ImageSpace measures the file systems in which the runtime keeps images, without a call of the runtime. It looks at
// the paths that the runtime named when it was opened. A process in a container sees them where they are mounted. Where
// it sees none, the root of the container serves if that is an overlay: its upper layer is on the file system of the
// images, unless the runtime names another one for containers. Otherwise the error is errors.ErrUnsupported.
func (r *Runtime) ImageSpace() ([]Space, error) {
	return r.stores.measure(disk{stat: statfs, root: "/"})
}

// disk is what a process sees of file systems.
type disk struct {
	// stat measures the file system of a path, and reports whether that is an overlay.
	stat func(path string) (space Space, overlay bool, err error)
	// root is the root of the process.
	root string
}

func (s stores) measure(d disk) ([]Space, error) {
	var all []Space
	var failures []error
	for _, path := range s.paths {
		space, _, err := d.stat(path)
		if err != nil {
			failures = append(failures, fmt.Errorf("measure %s: %w", path, err))
			continue
		}
		all = append(all, space)
	}
	if len(all) > 0 {
		return all, nil
	}
	if root, overlay, err := d.stat(d.root); err == nil && overlay && !s.split {
		return []Space{root}, nil
	}
	paths := strings.Join(s.paths, ", ")
	if paths == "" {
		paths = "its image store"
	}
	const text = "measure image file system: the process sees neither %s nor a layer on its file system: %w"
	unseen := fmt.Errorf(text, paths, errors.ErrUnsupported)
	return nil, errors.Join(append([]error{unseen}, failures...)...)
}
