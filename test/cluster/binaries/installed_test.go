package binaries

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// store makes a directory of programs that report a version.
func store(t *testing.T, dir, version string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.WriteFile(filepath.Join(dir, name),
			[]byte("#!/bin/sh\necho Kubernetes "+version+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInstalled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	cache, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := cache.version(catalogue()["kube-apiserver"])
	if err != nil {
		t.Fatal(err)
	}
	cache.Dir = t.TempDir()
	home, assets := t.TempDir(), t.TempDir()
	suffix := "-" + runtime.GOOS + "-" + runtime.GOARCH
	dir := filepath.Join(home, ".local", "share", "kubebuilder-envtest", "k8s")
	if runtime.GOOS == "darwin" {
		dir = filepath.Join(home, "Library", "Application Support", "io.kubebuilder.envtest", "k8s")
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv(AssetsVariable, "")
	check := func(why, want string) {
		t.Helper()
		if got := cache.Installed(t.Context())["kube-apiserver"]; got != want {
			t.Errorf("%s: found %q, want %q", why, got, want)
		}
	}
	check("an empty home", "")
	store(t, filepath.Join(dir, "1.0.0"+suffix), "v1.0.0")
	check("a store with another minor version alone", "")
	store(t, filepath.Join(dir, "9.9.9-other-arch"), pinned)
	check("a store for another machine", "")
	found := filepath.Join(dir, pinned[1:]+suffix)
	store(t, found, pinned)
	check("a store with the pinned version", filepath.Join(found, "kube-apiserver"))
	t.Setenv(AssetsVariable, assets)
	check("the variable goes first, also where its directory is empty", "")
	store(t, assets, pinned)
	check("the variable", filepath.Join(assets, "kube-apiserver"))
}

func TestServes(t *testing.T) {
	cases := map[string]struct {
		controllers, server string
		want                bool
	}{
		"another patch release":              {"v1.36.0", "Kubernetes v1.36.7\n", true},
		"the next minor release":             {"v1.36.0", "Kubernetes v1.37.1\n", true},
		"controllers are not to be newer":    {"v1.36.0", "Kubernetes v1.35.9\n", false},
		"controllers are not to be two back": {"v1.36.0", "Kubernetes v1.38.0\n", false},
		"another major release":              {"v1.36.0", "Kubernetes v2.36.0\n", false},
		"a longer number":                    {"v1.3.0", "Kubernetes v1.36.0\n", false},
		"no answer":                          {"v1.36.0", "", false},
		"no version at all":                  {"", "", false},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := serves(c.controllers, c.server); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
