package podbench

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// roundTripper is a function in the place of a type.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls it.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// record notes a request for an object: not those of informers, and not events.
func (b *Bench) record(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.sent++
	b.mu.Unlock()
	response, err := next.RoundTrip(r)
	b.mu.Lock()
	b.answered++
	b.mu.Unlock()
	query := r.URL.Query()
	if query.Get("watch") != "" || query.Get("limit") != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watched[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]] = true
		return response, err
	}
	path := b.short(r.URL.Path)
	if path == "" || strings.Contains("/"+path, "/events") {
		return response, err
	}
	code := 0
	if response != nil {
		code = response.StatusCode
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, fmt.Sprintf("%s %s %d", r.Method, path, code))
	return response, err
}

// short is a path without the version of the API and without the namespace; empty if it is not that of objects.
func (b *Bench) short(path string) string {
	at := map[string]int{"api": 2, "apis": 3}
	all := strings.Split(strings.TrimPrefix(path, "/"), "/")
	before, objects := at[all[0]]
	if !objects || len(all) <= before {
		return ""
	}
	return strings.TrimPrefix(strings.Join(all[before:], "/"), "namespaces/"+b.Namespace+"/")
}

// Asked are the requests since it was last called: method, path in the namespace, and code of the answer. The path of what is not
// in the namespace begins with its resource.
func (b *Bench) Asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.asked
	b.asked = nil
	return all
}

// About are the requests that contain all of some words.
func About(requests []string, words ...string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(request string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(request, w) })
	})
}

// Watched are the resources of which a manager has had an informer.
func (b *Bench) Watched() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.watched))
}
