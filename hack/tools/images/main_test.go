package main

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// program stands for the manager: it takes seconds to build for two platforms.
const program = `package main

var version string

func main() { println(version) }
`

func TestImages(t *testing.T) {
	log.SetOutput(io.Discard) // of ko
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	push := func() string {
		root := t.TempDir() // another one each time: the digest must not depend on it
		for path, text := range map[string]string{
			"go.mod": "module " + module + "\n\ngo 1.24.0\n", "programs.mod": "module " + module + "\n\ngo 1.24.0\n",
			"examples/kruise-manager/main.go": program,
		} {
			path = filepath.Join(root, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		var out strings.Builder
		if err := run(t.Context(), options{
			root: root, version: "v0.1.0", tags: "v0.1.0,v0.1", registry: host + "/team", insecure: true,
			platforms: "linux/amd64,linux/arm64", programs: []string{"kruise-manager"},
		}, &out); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out.String())
	}
	pushed := push()
	if again := push(); again != pushed {
		t.Errorf("built twice, it is %s and %s", pushed, again)
	}
	if !strings.HasPrefix(pushed, host+"/team/kruise-manager:v0.1.0@sha256:") &&
		!strings.HasPrefix(pushed, host+"/team/kruise-manager@sha256:") {
		t.Errorf("it was pushed as %s", pushed)
	}
	reference, err := name.ParseReference(host + "/team/kruise-manager:v0.1")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("the index has %v, %v", manifest, err)
	}
	for _, one := range manifest.Manifests {
		image, err := index.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		check(t, image, one.Platform.Architecture)
		sbom, err := name.ParseReference(host + "/team/kruise-manager:" + strings.ReplaceAll(one.Digest.String(), ":", "-") + ".sbom")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Get(sbom); err != nil {
			t.Errorf("%s has no SBOM: %v", one.Platform, err)
		}
	}
}

// check says what is in an image.
func check(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != architecture || config.Config.User != "65534:65534" ||
		strings.Join(config.Config.Entrypoint, " ") != "/ko-app/kruise-manager" ||
		config.Config.Labels["org.opencontainers.image.version"] != "v0.1.0" {
		t.Errorf("the image of %s is configured as %+v", architecture, config.Config)
	}
	content := mutate.Extract(image)
	defer content.Close()
	var files []string
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files = append(files, header.Name)
		}
	}
	if strings.Join(files, " ") != "/ko-app/kruise-manager" && strings.Join(files, " ") != "ko-app/kruise-manager" {
		t.Errorf("the image of %s has the files %q", architecture, files)
	}
}

func TestArguments(t *testing.T) {
	for name, c := range map[string]struct {
		why string
		o   options
	}{
		"no program": {"nothing is to be built", options{registry: "localhost:5000"}},
		"nowhere":    {"it is neither pushed nor written", options{programs: []string{"kruise-manager"}}},
		"both":       {"it is pushed and written", options{registry: "a", layout: "b", programs: []string{"kruise-manager"}}},
		"unknown":    {"the program is not ours", options{layout: "b", programs: []string{"nginx"}}},
	} {
		if err := run(t.Context(), c.o, io.Discard); err == nil {
			t.Errorf("%s: it succeeds, although %s", name, c.why)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := run(t.Context(), options{layout: t.TempDir(), programs: []string{"kruise-manager"}}, io.Discard); err == nil {
		t.Error("a time that is no number is taken")
	}
}
