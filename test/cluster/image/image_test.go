package image

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRepositoryIsWhatRuntimesAskFor(t *testing.T) {
	tests := map[string]struct{ repository, tag string }{
		"nginx":                      {"library/nginx", "latest"},
		"nginx:1.27":                 {"library/nginx", "1.27"},
		"docker.io/nginx:1":          {"library/nginx", "1"},
		"docker.io/library/nginx:1":  {"library/nginx", "1"},
		"team/app:2":                 {"team/app", "2"},
		"registry.example.com/a/b:3": {"a/b", "3"},
		"localhost:5000/a:4":         {"a", "4"},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			repository, tag := split(name)
			if repository != want.repository || tag != want.tag {
				t.Errorf("%s, %s; want %s, %s", repository, tag, want.repository, want.tag)
			}
		})
	}
}

// registry accepts whatever is pushed, and keeps it by its path.
func registry(t *testing.T) (*Pusher, map[string][]byte) {
	t.Helper()
	content := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodHead && content[r.URL.Path] == nil:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodPost:
			w.Header().Set("Location", r.URL.Path+"1?state=x")
			w.WriteHeader(http.StatusAccepted)
		case r.Method == http.MethodPut:
			path := r.URL.Path
			if digest := r.URL.Query().Get("digest"); digest != "" {
				path = strings.Replace(path, "uploads/1", digest, 1)
			}
			content[path], _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusCreated)
		}
	}))
	t.Cleanup(server.Close)
	return &Pusher{registry: server.URL, base: []byte("base")}, content
}

func TestPushedImageIsComplete(t *testing.T) {
	pusher, content := registry(t)
	made, err := pusher.Push(t.Context(), Spec{
		Name: "team/app:1", Env: []string{"A=b"}, Files: map[string][]byte{"/x/y": []byte("z")},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest := content["/v2/team/app/manifests/1"]
	if got := describe(manifestType, manifest).Digest; got != made.Digest {
		t.Errorf("digest of the pushed manifest %s, want %s", got, made.Digest)
	}
	var parsed struct {
		Config descriptor
		Layers []descriptor
	}
	if err := json.Unmarshal(manifest, &parsed); err != nil {
		t.Fatal(err)
	}
	if parsed.Config.Digest != made.ID || len(parsed.Layers) != 2 {
		t.Errorf("manifest %s, want ID %s and two layers", manifest, made.ID)
	}
	for _, d := range append(parsed.Layers, parsed.Config) {
		blob := content["/v2/team/app/blobs/"+d.Digest]
		if diff := cmp.Diff(d, describe(d.MediaType, blob)); diff != "" {
			t.Errorf("blob (-described +pushed):\n%s", diff)
		}
	}
}

func TestDigestFollowsContent(t *testing.T) {
	pusher, _ := registry(t)
	specs := []Spec{
		{Name: "a:1"},
		{Name: "a:2"},
		{Name: "a:1", Env: []string{"A=b"}},
		{Name: "a:1", Cmd: []string{"true"}},
		{Name: "a:1", Files: map[string][]byte{"f": nil}},
		{Name: "a:1", Labels: map[string]string{"a": "b"}},
	}
	seen := map[string]string{}
	for _, s := range specs {
		first, err := pusher.Push(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		second, err := pusher.Push(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if first != second {
			t.Errorf("the same image pushed twice is %v and %v", first, second)
		}
		if other, ok := seen[first.Digest]; ok {
			t.Errorf("%+v has the digest of %s", s, other)
		}
		seen[first.Digest] = fmt.Sprintf("%+v", s)
	}
}
