package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// layer is an uncompressed tar archive.
type layer struct{ bytes.Buffer }

// busyboxLayer is a root file system with busybox under each of its names.
func busyboxLayer(ctx context.Context, busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("read busybox: %w", err)
	}
	list, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the applets of busybox: %w", err)
	}
	var l layer
	w := tar.NewWriter(&l)
	for _, dir := range []string{"bin", "data", "etc", "root", "tmp", "usr/sbin", "usr/share/nginx/html", "var"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return nil, fmt.Errorf("write layer: %w", err)
		}
	}
	for _, file := range []struct {
		name, content string
		mode          int64
	}{
		{"bin/busybox", string(program), 0o755},
		{"bin/bash", "#!/bin/sh\nexec sh \"$@\"\n", 0o755},
		{"etc/passwd", "root:x:0:0:root:/:/bin/sh\n", 0o644},
		{"etc/group", "root:x:0:\n", 0o644},
		{"usr/share/nginx/html/index.html", "ok\n", 0o644},
	} {
		if err := writeFile(w, file.name, []byte(file.content), file.mode); err != nil {
			return nil, err
		}
	}
	for applet := range strings.FieldsSeq(string(list)) {
		if applet == "busybox" || applet == "bash" {
			continue
		}
		link := &tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox", Mode: 0o777}
		if err := w.WriteHeader(link); err != nil {
			return nil, fmt.Errorf("write layer: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	return l.Bytes(), nil
}

// filesLayer has the given files, executable all of them, in the order of their names.
func filesLayer(files map[string][]byte) ([]byte, error) {
	var l layer
	w := tar.NewWriter(&l)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(w, strings.TrimPrefix(path.Clean("/"+name), "/"), files[name], 0o755); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	return l.Bytes(), nil
}

// writeFile leaves out times and owners, so that the digest depends on the content alone.
func writeFile(w *tar.Writer, name string, content []byte, mode int64) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}
	if err := w.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s to layer: %w", name, err)
	}
	if _, err := w.Write(content); err != nil {
		return fmt.Errorf("write %s to layer: %w", name, err)
	}
	return nil
}
