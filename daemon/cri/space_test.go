package cri

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// seen are file systems by path.
type seen map[string]struct {
	available uint64
	overlay   bool
}

func (s seen) stat(path string) (Space, bool, error) {
	f, ok := s[path]
	if !ok {
		return Space{}, false, fs.ErrNotExist
	}
	return Space{Capacity: 100, Available: f.available}, f.overlay, nil
}

func on(paths ...string) (all []*criv1.FilesystemUsage) {
	for _, path := range paths {
		all = append(all, &criv1.FilesystemUsage{FsId: &criv1.FilesystemIdentifier{Mountpoint: path}})
	}
	return all
}

func TestStoresAreMeasured(t *testing.T) {
	const store = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"
	for why, test := range map[string]struct {
		info *criv1.ImageFsInfoResponse
		seen seen
		// want is what is available on each file system; empty for an error.
		want []uint64
	}{
		"the node's path, where it is mounted": {
			&criv1.ImageFsInfoResponse{ImageFilesystems: on(store)}, seen{store: {available: 10}, "/": {50, true}}, []uint64{10},
		},
		"all of them, each once": {
			&criv1.ImageFsInfoResponse{ImageFilesystems: on("/b", "/a", "/b")},
			seen{"/a": {available: 1}, "/b": {available: 2}},
			[]uint64{1, 2},
		},
		"those that are mounted": {
			&criv1.ImageFsInfoResponse{ImageFilesystems: on("/a", "/b")},
			seen{"/b": {available: 2}, "/": {50, true}},
			[]uint64{2},
		},
		"the root of a container is on the file system of images": {
			&criv1.ImageFsInfoResponse{ImageFilesystems: on(store)}, seen{"/": {50, true}}, []uint64{50},
		},
		"also where the runtime names the same one for containers": {
			&criv1.ImageFsInfoResponse{ImageFilesystems: on(store), ContainerFilesystems: on(store)},
			seen{"/": {50, true}},
			[]uint64{50},
		},
		"but not where it names another one": {
			&criv1.ImageFsInfoResponse{ImageFilesystems: on("/images"), ContainerFilesystems: on("/containers")},
			seen{"/": {50, true}},
			nil,
		},
		"which a mount makes good": {
			&criv1.ImageFsInfoResponse{ImageFilesystems: on("/images"), ContainerFilesystems: on("/containers")},
			seen{"/images": {available: 7}, "/": {50, true}},
			[]uint64{7},
		},
		"a root that is a volume of its own says nothing of images": {
			&criv1.ImageFsInfoResponse{ImageFilesystems: on(store)}, seen{"/": {50, false}}, nil,
		},
		"a runtime that names no path": {&criv1.ImageFsInfoResponse{}, seen{"/": {50, true}}, []uint64{50}},
		"nothing to be seen":           {nil, seen{}, nil},
	} {
		var got []uint64
		spaces, err := storesOf(test.info).measure(disk{stat: test.seen.stat, root: "/"})
		for _, s := range spaces {
			got = append(got, s.Available)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", why, err, diff)
		}
		if err != nil &&
			(!errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "measure image file system: ")) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
