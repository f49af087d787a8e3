//go:build e2e

package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kruisekit/kruisekit/test/cluster"
)

// registry is one of a test's own, between the nodes and what has the images. It does what registries do on bad days.
type registry struct {
	host string

	mu             sync.Mutex
	user, password string
	// drops is how many layers are still to be cut off in their middle.
	drops int
	// hold keeps layers back in their middle until it is closed. Nil keeps none.
	hold chan struct{}

	asked  map[string]int // layers begun, by repository
	atOnce int            // layers under way
	given  map[string]int // layers that were taken to their end, by repository
}

func newRegistry(t *testing.T, c *cluster.Cluster) *registry {
	t.Helper()
	r := &registry{asked: map[string]int{}, given: map[string]int{}}
	r.host = c.Registry(t, r.between)
	return r
}

// set changes how it behaves.
func (r *registry) set(change func(*registry)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// get copies what it has counted.
func get[T any](r *registry, what func(*registry) T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return what(r)
}

// release lets go of the layers that it held, and of those to come.
func (r *registry) release() {
	r.set(func(r *registry) {
		if r.hold != nil {
			close(r.hold)
		}
		r.hold = nil
	})
}

// large is what a layer has at least to be dealt with as one: configurations of images are smaller.
const large = 256 << 10

func (r *registry) between(well http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		user, password := r.user, r.password
		r.mu.Unlock()
		if u, p, _ := q.BasicAuth(); user != "" && (u != user || p != password) {
			w.Header().Set("Www-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		repository, _, found := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/"), "/blobs/")
		if !found || q.Method != http.MethodGet {
			well.ServeHTTP(w, q)
			return
		}
		l := &layer{ResponseWriter: w, registry: r, request: q, repository: repository}
		defer l.end()
		well.ServeHTTP(l, q)
	})
}

// layer is a blob on its way to a node.
type layer struct {
	http.ResponseWriter
	registry      *registry
	request       *http.Request
	repository    string
	size, written int
	begun, met    bool
}

func (l *layer) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func (l *layer) WriteHeader(status int) {
	l.size, _ = strconv.Atoi(l.Header().Get("Content-Length"))
	if l.size >= large {
		l.begun = true
		l.registry.set(func(r *registry) {
			r.asked[l.repository]++
			r.atOnce++
		})
	}
	l.ResponseWriter.WriteHeader(status)
}

func (l *layer) Write(content []byte) (int, error) {
	if l.begun && !l.met && l.written > l.size/2 {
		l.met = true
		l.middle()
	}
	n, err := l.ResponseWriter.Write(content)
	l.written += n
	return n, err
}

// middle is where what goes wrong goes wrong.
func (l *layer) middle() {
	l.registry.mu.Lock()
	drop, hold := l.registry.drops > 0, l.registry.hold
	if drop {
		l.registry.drops--
	}
	l.registry.mu.Unlock()
	if drop {
		_ = http.NewResponseController(l.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	if hold != nil {
		select {
		case <-hold:
		case <-l.request.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

func (l *layer) end() {
	if !l.begun {
		return
	}
	l.registry.set(func(r *registry) {
		r.atOnce--
		if l.written == l.size {
			r.given[l.repository]++
		}
	})
}
