//go:build e2e && linux

package cri_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// registry keeps images in memory. Those below private/ want a name and a password; the blobs of those below slow/ never
// come.
type registry struct {
	url string
	// stalled and left tell of requests that wait for such a blob, and of their end.
	stalled, left chan struct{}

	mu      sync.Mutex
	content map[string][]byte // by digest, and by manifest
}

const registryUser, registryPassword = "jane", "s3cret"

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{content: map[string][]byte{}, stalled: make(chan struct{}, 100), left: make(chan struct{}, 100)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	path := strings.TrimPrefix(q.URL.Path, "/v2/")
	repository, file, blobs := strings.Cut(path, "/blobs/")
	writes := q.Method == http.MethodPut || q.Method == http.MethodPost
	if user, password, _ := q.BasicAuth(); strings.HasPrefix(path, "private/") && !writes &&
		(user != registryUser || password != registryPassword) && !r.pushing(q) {
		w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}`, http.StatusUnauthorized)
		return
	}
	switch {
	case path == "":
	case blobs && q.Method == http.MethodPost:
		w.Header().Set("Location", "/v2/"+repository+"/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case q.Method == http.MethodPut:
		r.put(w, q, path)
	case blobs && q.Method == http.MethodGet && repository == "slow/app":
		r.stalled <- struct{}{}
		<-q.Context().Done()
		r.left <- struct{}{}
	case blobs:
		r.get(w, q, file)
	default:
		r.get(w, q, path)
	}
}

// pushing tells whether it is a test that looks for what it need not push.
func (*registry) pushing(q *http.Request) bool {
	return strings.HasPrefix(q.UserAgent(), "Go-http-client")
}

func (r *registry) put(w http.ResponseWriter, q *http.Request, path string) {
	content, err := io.ReadAll(q.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := digestOf(content)
	r.content[digest] = content
	if repository, _, ok := strings.Cut(path, "/manifests/"); ok {
		r.content[path], r.content[repository+"/manifests/"+digest] = content, content
	}
	w.WriteHeader(http.StatusCreated)
}

func (r *registry) get(w http.ResponseWriter, q *http.Request, key string) {
	r.mu.Lock()
	content, ok := r.content[key]
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, q)
		return
	}
	kind := "application/octet-stream"
	if strings.Contains(key, "/manifests/") {
		kind = "application/vnd.oci.image.manifest.v1+json"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", digestOf(content))
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	if q.Method == http.MethodGet {
		_, _ = w.Write(content)
	}
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }
