package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// store is the directory of the volumes. Each has a directory of its data, and two sizes, which differ while a volume
// grows: that of the volume, which the controller writes, and that of its file system, which nodes write. Pods can read
// the second one, in the file .size.
type store struct{ dir string }

func (s store) data(id string) string  { return filepath.Join(s.dir, id, "data") }
func (s store) size(id string) string  { return filepath.Join(s.dir, id, "size") }
func (s store) grown(id string) string { return filepath.Join(s.data(id), ".size") }

// create makes a volume, and returns its size. A volume that exists stays as it is.
func (s store) create(id string, size int64) (int64, error) {
	if !isID(id) {
		return 0, status.Errorf(codes.InvalidArgument, "%q is no name of a volume", id)
	}
	if has, err := s.read(id); err == nil {
		if has < size {
			return 0, status.Errorf(codes.AlreadyExists, "volume %s has %d bytes, not %d", id, has, size)
		}
		return has, nil
	}
	if err := os.MkdirAll(s.data(id), 0o777); err != nil {
		return 0, status.Error(codes.Internal, err.Error())
	}
	return size, write(s.size(id), size)
}

// read returns the size of a volume.
func (s store) read(id string) (int64, error) {
	if !isID(id) {
		return 0, status.Errorf(codes.NotFound, "%q is no name of a volume", id)
	}
	size, err := read(s.size(id))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, status.Errorf(codes.NotFound, "no volume %s", id)
	}
	if err != nil {
		return 0, status.Errorf(codes.Internal, "read volume %s: %v", id, err)
	}
	return size, nil
}

func (s store) remove(id string) error {
	if !isID(id) {
		return nil // never made here
	}
	if err := os.RemoveAll(filepath.Join(s.dir, id)); err != nil {
		return status.Errorf(codes.Internal, "delete volume %s: %v", id, err)
	}
	return nil
}

// isID reports whether a name is one of a directory in the store.
func isID(name string) bool { return filepath.Base(name) == name && name != "." && name != ".." }

func read(path string) (int64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
}

// write replaces a file as a whole, so that no reader finds half of it.
func write(path string, size int64) error {
	err := os.WriteFile(path+".new", []byte(strconv.FormatInt(size, 10)+"\n"), 0o644)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return status.Errorf(codes.Internal, "write a size: %v", err)
	}
	return nil
}
