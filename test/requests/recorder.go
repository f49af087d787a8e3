// Package requests records what a client asks of an API server, so that a test can count it.
package requests

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Recorder records the requests for objects: not those of informers, not discovery, and not events. It may be used
// concurrently.
type Recorder struct {
	// Namespace is left out of the paths of its objects.
	Namespace string
	// Patience is how long Take waits for answers; 5 s if it is 0.
	Patience time.Duration

	mu       sync.Mutex
	requests []*request
}

// request is one that was sent.
type request struct {
	text string
	// done is closed with the answer.
	done chan struct{}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Wrap records what goes through a transport, as for the method Wrap of a rest.Config.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		path := r.short(q.URL.Path)
		if path == "" || OfInformer(q) || strings.Contains("/"+path, "/events") {
			return next.RoundTrip(q)
		}
		sent := &request{done: make(chan struct{})}
		r.mu.Lock()
		r.requests = append(r.requests, sent)
		r.mu.Unlock()
		response, err := next.RoundTrip(q)
		code := 0
		if response != nil {
			code = response.StatusCode
		}
		sent.text = fmt.Sprintf("%s %s %d", q.Method, path, code)
		close(sent.done)
		return response, err
	})
}

// OfInformer reports whether a request is one of an informer: a watch, the list before it, or the list after a watch
// that the API server has ended, which names the version that the informer has.
func OfInformer(q *http.Request) bool {
	query := q.URL.Query()
	version := query.Get("resourceVersion")
	return query.Get("watch") != "" || query.Get("limit") != "" || query.Get("allowWatchBookmarks") != "" ||
		q.Method == http.MethodGet && version != "" && version != "0"
}

// short is a path without the version of the API and without the namespace; empty if it is not that of objects.
func (r *Recorder) short(path string) string {
	version := map[string]int{"api": 2, "apis": 3}
	all := strings.Split(strings.TrimPrefix(path, "/"), "/")
	before, objects := version[all[0]]
	if !objects || len(all) <= before {
		return ""
	}
	return strings.TrimPrefix(strings.Join(all[before:], "/"), "namespaces/"+r.Namespace+"/")
}

// Take returns the requests since it was last called, in the order in which they were sent: method, path in the
// namespace, and code of the answer, which is 0 where there is none. The path of what is not in the namespace begins
// with its resource, or with another namespace.
//
// Another client may see the effect of a request before its answer is there. So Take waits for the answers to what was
// sent, and leaves a request that stays without one to its next call.
func (r *Recorder) Take() []string {
	r.mu.Lock()
	sent := r.requests
	r.requests = nil
	r.mu.Unlock()
	texts, open := answers(sent, cmp.Or(r.Patience, 5*time.Second))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = slices.Concat(open, r.requests)
	return texts
}

// Sent counts the requests that the next Take returns, with those that have no answer yet.
func (r *Recorder) Sent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// answers waits for the answers to requests, and returns them and the requests that have none.
func answers(sent []*request, patience time.Duration) (texts []string, open []*request) {
	late := time.NewTimer(patience)
	defer late.Stop()
	over := false
	for _, q := range sent {
		if !over {
			select {
			case <-q.done:
			case <-late.C:
				over = true
			}
		}
		select {
		case <-q.done:
			texts = append(texts, q.text)
		default:
			open = append(open, q)
		}
	}
	return texts, open
}

// About returns the requests that contain all of some words.
func About(requests []string, words ...string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(request string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(request, w) })
	})
}

// Without returns the requests that contain none of some words.
func Without(requests []string, words ...string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(request string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(request, w) })
	})
}
