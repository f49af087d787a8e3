package binaries

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The project's own code in a module decides about its own program, and about no other of the module.
func TestKeyCoversOwnCode(t *testing.T) {
	cache := Cache{Dir: t.TempDir(), Source: t.TempDir()}
	module := filepath.Join(cache.Source, "kubernetes")
	code := filepath.Join(module, "kube-controllers", "main.go")
	if err := os.MkdirAll(filepath.Dir(code), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte("module a"), 0o600); err != nil {
		t.Fatal(err)
	}
	own, others := map[string]bool{}, map[string]bool{}
	for _, content := range []string{"package a", "package b"} {
		if err := os.WriteFile(code, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, paths := range map[string]map[string]bool{"kube-controllers": own, "etcd": others} {
			path, err := cache.target(name)
			if err != nil {
				t.Fatal(err)
			}
			paths[path] = true
		}
	}
	if len(own) != 2 || len(others) != 1 {
		t.Errorf("places of kube-controllers: %v, want two; of etcd: %v, want one", own, others)
	}
}

// A runc without seccomp serves where libseccomp is absent. Once libseccomp is there, runc is missing until it is built
// with seccomp, also after a build that failed.
func TestKeyCoversTags(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("pkg-config is a shell script")
	}
	cache, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	cache.Dir = t.TempDir()
	bin := t.TempDir()
	t.Setenv("PATH", bin) // no pkg-config, and no go command
	path, err := cache.target("runc")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cache.Path("runc"); err != nil {
		t.Errorf("without libseccomp: %v", err)
	}
	if err := os.WriteFile(filepath.Join(bin, "pkg-config"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := cache.BuildPrograms(t.Context(), []string{"runc"}, io.Discard); err == nil {
		t.Error("runc is built without the go command")
	}
	if _, err := cache.Path("runc"); !errors.Is(err, ErrMissing) {
		t.Errorf("after the failed build with libseccomp: %v, want ErrMissing", err)
	}
	other := catalogue()["containerd"]
	other.tags = ""
	was, errWas := cache.key(catalogue()["containerd"])
	is, errIs := cache.key(other)
	if was == is || errWas != nil || errIs != nil {
		t.Errorf("a containerd of other tags has the same key %s: %v, %v", is, errWas, errIs)
	}
}
