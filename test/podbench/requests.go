package podbench

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/test/requests"
)

// roundTripper is a function in the place of a type.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls it.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// count counts a request, and notes what informers watch.
func (b *Bench) count(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.sent++
	if requests.OfInformer(r) {
		b.watched[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]] = true
	}
	b.mu.Unlock()
	response, err := next.RoundTrip(r)
	b.mu.Lock()
	b.answered++
	b.mu.Unlock()
	return response, err
}

// Asked are the requests of the managers of Run for objects, events left out, since it was last called: method, path in
// the namespace, and code of the answer. The path of what is not in the namespace begins with its resource.
func (b *Bench) Asked() []string { return b.requests.Take() }

// Watched are the resources of which a manager has had an informer.
func (b *Bench) Watched() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.watched))
}
