package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// archiveOf has programs that report a version, as upstream packs them.
func archiveOf(t *testing.T, version string) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	files := tar.NewWriter(compressed)
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl", "../README"} {
		content := "#!/bin/sh\necho Kubernetes " + version + "\n"
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(content))}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// entry is that of a release in an index.
func entry(server *httptest.Server, version, sum string) string {
	name := "envtest-" + version + "-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
	return fmt.Sprintf("  %s:\n    %s:\n      hash: %s\n      selfLink: %s/%s\n", version, name, sum, server.URL, version)
}

func TestDownload(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	cache, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := cache.KubernetesVersion()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv(AssetsVariable, "")
	minor := "v" + Minor(pinned)
	content := archiveOf(t, minor+".10")
	sum := fmt.Sprintf("%x", sha512.Sum512(content))
	var index string
	served := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/index":
			fmt.Fprint(w, "releases:\n"+index)
		case "/silent":
			<-served
		case "/" + minor + ".10":
			_, _ = w.Write(content)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	defer close(served)
	latest := entry(server, minor+".10", sum)
	older := entry(server, "v1.0.0", sum) + entry(server, minor+".11-rc.0", sum) + entry(server, minor+".9", sum)
	for why, c := range map[string]struct{ index, path, err string }{
		"the latest patch release of the pinned minor version": {older + latest, "/index", ""},
		"another sum":             {entry(server, minor+".10", "5d"), "/index", "the SHA-512 sum is " + sum + ", want 5d"},
		"an archive that is gone": {older, "/index", "404 Not Found"},
		"no suitable release":     {entry(server, "v1.0.0", sum), "/index", "has nothing for Kubernetes " + pinned},
		"no index":                {"", "/other", "404 Not Found"},
		"a silent server":         {"", "/silent", "nothing received for 50ms"},
	} {
		t.Run(why, func(t *testing.T) {
			index, cache.Dir = c.index, t.TempDir()
			f := fetcher{log: io.Discard, patience: time.Minute}
			if c.path == "/silent" {
				f.patience = 50 * time.Millisecond
			}
			err := cache.download(t.Context(), server.URL+c.path, f)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("ended with %v, want %q", err, c.err)
			}
			if found := cache.Installed(t.Context())["kube-apiserver"]; (found != "") != (c.err == "") {
				t.Errorf("installed is %q", found)
			}
			left, err := os.ReadDir(cache.downloads())
			if err != nil && !os.IsNotExist(err) || len(left) > 1 {
				t.Errorf("left: %v, %v", left, err)
			}
			if files, _ := filepath.Glob(filepath.Join(cache.downloads(), "*", "*")); len(files) != 0 && len(files) != 3 {
				t.Errorf("unpacked: %v", files)
			}
		})
	}
}
