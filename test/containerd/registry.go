package containerd

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

// Registry keeps images in memory. Those below private/ want a name and a password; the blobs of those below slow/ do
// not come, and those below torn/ break off in the middle.
type Registry struct {
	// URL of the registry.
	URL string
	// Stalled and Left receive requests that wait for a blob which does not come, and their end.
	Stalled, Left chan struct{}

	mu      sync.Mutex
	content map[string][]byte // by digest, and by manifest
	torn    int
	down    bool
}

// Who may pull what is below private/.
const (
	User     = "jane"
	Password = "s3cret"
)

// NewRegistry starts one that ends with the test.
func NewRegistry(t *testing.T) *Registry {
	t.Helper()
	r := &Registry{
		content: map[string][]byte{},
		Stalled: make(chan struct{}, 100),
		Left:    make(chan struct{}, 100),
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Down has all requests fail, or no longer.
func (r *Registry) Down(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = is
}

// Torn is how many blobs have broken off.
func (r *Registry) Torn() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.torn
}

func (r *Registry) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

// ServeHTTP answers as registries do.
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	path := strings.TrimPrefix(q.URL.Path, "/v2/")
	repository, file, blobs := strings.Cut(path, "/blobs/")
	switch {
	case r.isDown():
		panic(http.ErrAbortHandler) //nolint:forbidigo // closes the connection
	case path == "":
	case q.Method == http.MethodPost:
		w.Header().Set("Location", "/v2/"+repository+"/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case q.Method == http.MethodPut:
		r.put(w, q, path)
	case !r.admits(q, path):
		w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}`, http.StatusUnauthorized)
	case blobs && q.Method == http.MethodGet:
		r.blob(w, q, repository, file)
	case blobs:
		r.get(w, q, file)
	default:
		r.get(w, q, path)
	}
}

// admits reports whether a client may read a path. A test that looks for what it need not push may.
func (*Registry) admits(q *http.Request, path string) bool {
	user, password, _ := q.BasicAuth()
	return !strings.HasPrefix(path, "private/") || user == User && password == Password ||
		strings.HasPrefix(q.UserAgent(), "Go-http-client")
}

// blob answers a request for a blob.
func (r *Registry) blob(w http.ResponseWriter, q *http.Request, repository, digest string) {
	switch {
	case strings.HasPrefix(repository, "torn/"):
		r.tear(w, digest)
	case strings.HasPrefix(repository, "slow/"):
		notify(r.Stalled)
		<-q.Context().Done()
		notify(r.Left)
	default:
		r.get(w, q, digest)
	}
}

func (r *Registry) put(w http.ResponseWriter, q *http.Request, path string) {
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

func (r *Registry) get(w http.ResponseWriter, q *http.Request, key string) {
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

// tear gives half of a blob.
func (r *Registry) tear(w http.ResponseWriter, digest string) {
	r.mu.Lock()
	content := r.content[digest]
	r.torn++
	r.mu.Unlock()
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	_, _ = w.Write(content[:len(content)/2])
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler) //nolint:forbidigo // closes the connection
}

// notify sends to a receiver, if there is one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }
