package requests_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/test/requests"
)

// transport answers with a code for each path, once its gate is open.
type transport struct {
	codes map[string]int
	gates map[string]chan struct{}
}

func (s transport) RoundTrip(q *http.Request) (*http.Response, error) {
	if gate := s.gates[q.URL.Path]; gate != nil {
		<-gate
	}
	code := s.codes[q.URL.Path]
	if code == 0 {
		return nil, http.ErrServerClosed
	}
	return &http.Response{StatusCode: code}, nil
}

func send(through http.RoundTripper, method, url string) {
	if response, err := through.RoundTrip(httptest.NewRequest(method, url, http.NoBody)); err == nil &&
		response.Body != nil {
		_ = response.Body.Close()
	}
}

func TestPaths(t *testing.T) {
	for url, want := range map[string][]string{
		"/api/v1/namespaces/a/pods/web":                                {"GET pods/web 200"},
		"/api/v1/namespaces/b/pods/web":                                {"GET namespaces/b/pods/web 200"},
		"/apis/apps.kruise.io/v1beta1/nodeimages/n":                    {"GET nodeimages/n 200"},
		"/apis/apps.kruise.io/v1beta1":                                 nil,
		"/healthz":                                                     nil,
		"/api/v1/namespaces/a/events":                                  nil,
		"/apis/events.k8s.io/v1/namespaces/b/events":                   nil,
		"/api/v1/pods?watch=true":                                      nil,
		"/api/v1/pods?limit=500&resourceVersion=0":                     nil,
		"/api/v1/pods?resourceVersion=7":                               nil,
		"/api/v1/pods?resourceVersion=0":                               {"GET pods 200"},
		"/api/v1/pods?allowWatchBookmarks=true":                        nil,
		"/api/v1/namespaces/a/pods":                                    {"GET pods 200"},
		"/apis/apps.kruise.io/v1beta1/namespaces/a/clonesets/w/status": {"GET clonesets/w/status 200"},
	} {
		r := requests.Recorder{Namespace: "a"}
		q := httptest.NewRequest(http.MethodGet, url, http.NoBody)
		send(r.Wrap(transport{codes: map[string]int{q.URL.Path: 200}}), http.MethodGet, url)
		if diff := cmp.Diff(want, r.Take()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
}

// What was sent is waited for, and keeps its place; what has no answer is left to the next call.
func TestTakeWaits(t *testing.T) {
	const pods = "/api/v1/namespaces/a/pods/"
	gates := map[string]chan struct{}{pods + "slow": make(chan struct{}), pods + "stuck": make(chan struct{})}
	r := requests.Recorder{Namespace: "a", Patience: time.Second}
	through := r.Wrap(transport{
		codes: map[string]int{pods + "slow": 200, pods + "fast": 409, pods + "stuck": 201}, gates: gates,
	})
	var sent sync.WaitGroup
	for i, name := range []string{"slow", "stuck", "fast", "lost"} {
		sent.Add(1)
		go func() {
			defer sent.Done()
			send(through, http.MethodPatch, pods+name)
		}()
		for r.Sent() <= i {
			runtime.Gosched()
		}
	}
	time.AfterFunc(50*time.Millisecond, func() { close(gates[pods+"slow"]) })
	if diff := cmp.Diff([]string{"PATCH pods/slow 200", "PATCH pods/fast 409", "PATCH pods/lost 0"},
		r.Take()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	close(gates[pods+"stuck"])
	sent.Wait()
	if diff := cmp.Diff([]string{"PATCH pods/stuck 201"}, r.Take()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if more := r.Take(); more != nil {
		t.Errorf("taken twice: %q", more)
	}
}

func TestWords(t *testing.T) {
	all := []string{"GET pods/a 200", "PATCH pods/b 409", "PATCH nodes/b 200"}
	if diff := cmp.Diff([]string{"PATCH pods/b 409"}, requests.About(all, "PATCH", "pods/")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"PATCH nodes/b 200"}, requests.Without(all, " 409", "GET")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
