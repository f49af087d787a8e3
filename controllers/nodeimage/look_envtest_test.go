//go:build envtest

package nodeimage_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// eventually waits for the NodeImage of a node to be as wanted.
func (b *bench) eventually(short string, check func(*v1beta1.NodeImage) error) *v1beta1.NodeImage {
	b.Helper()
	image := &v1beta1.NodeImage{}
	b.until(func() error {
		*image = v1beta1.NodeImage{}
		if err := b.client.Get(b.Context(), client.ObjectKey{Name: b.name(short)}, image); err != nil {
			return err
		}
		return check(image)
	})
	return image
}

func exists(*v1beta1.NodeImage) error { return nil }

// lists wants the tags of a NodeImage.
func lists(want string) func(*v1beta1.NodeImage) error {
	return func(n *v1beta1.NodeImage) error {
		if got := tags(n); got != want {
			return fmt.Errorf("tags %q, want %q", got, want)
		}
		return nil
	}
}

// gone waits until there is no NodeImage.
func (b *bench) gone(short string) {
	b.Helper()
	b.until(func() error {
		var image v1beta1.NodeImage
		if err := b.client.Get(b.Context(), client.ObjectKey{Name: b.name(short)}, &image); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(errors.New("there is a NodeImage"), err)
		}
		return nil
	})
}

func (b *bench) until(check func() error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		b.Fatalf("%v; last: %v\nrequests:\n%s", err, last, strings.Join(b.requests.take(), "\n"))
	}
}

// looked waits for another pass of a node after something was done.
func (b *bench) looked(short string, do func()) {
	b.Helper()
	before := b.passes.of(b.name(short))
	do()
	b.until(func() error {
		if b.passes.of(b.name(short)) == before {
			return errors.New("nobody has looked")
		}
		return nil
	})
}

// touch has a node looked at.
func (b *bench) touch(node *corev1.Node) {
	b.Helper()
	change(b, node, func(n *corev1.Node) { n.Labels["test.kruisekit.dev/now"] = fmt.Sprint(time.Now().UnixNano()) })
}

// events with a reason, as "kind name: message".
func (b *bench) events(reason string) []string {
	b.Helper()
	var list corev1.EventList
	if err := b.client.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	var some []string
	for _, e := range list.Items {
		if e.Reason == reason && (e.InvolvedObject.Namespace == b.namespace || strings.HasPrefix(e.InvolvedObject.Name, b.namespace)) {
			some = append(some, e.InvolvedObject.Kind+" "+strings.TrimPrefix(e.InvolvedObject.Name, b.namespace+"-")+": "+e.Message)
		}
	}
	slices.Sort(some)
	return some
}

// still waits until the reconciler asks for nothing any more.
func (b *bench) still() {
	b.Helper()
	for quiet := 0; quiet < 5; quiet++ {
		before := b.requests.count()
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // that nothing happens is the thing to see
		if b.requests.count() != before {
			quiet = 0
		}
	}
}

// clock is the time of a reconciler, which the test puts forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// passes counts the passes of each node, and keeps the notes of the last.
type passes struct {
	mu    sync.Mutex
	all   map[string]int
	notes map[string][]note.Note
}

func (p *passes) note(_ context.Context, node string, notes []note.Note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all, p.notes = map[string]int{}, map[string][]note.Note{}
	}
	p.all[node]++
	p.notes[node] = notes
}

func (p *passes) of(node string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[node]
}

// last is the code of the first note of the last pass; empty for none.
func (p *passes) last(node string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.notes[node]) == 0 {
		return ""
	}
	return p.notes[node][0].Code
}

// requests records what the reconciler asks of the API server, but for watches, first lists and events.
type requests struct {
	mu  sync.Mutex
	all []string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *requests) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		path, isGet := request.URL.Path, request.Method == http.MethodGet
		if isGet && (request.URL.Query().Has("watch") || request.URL.Query().Has("limit") || request.URL.Query().Has("labelSelector")) ||
			strings.Contains(path, "/events") || !strings.Contains(path, "nodes") && !strings.Contains(path, "nodeimages") &&
			!strings.Contains(path, "jobs/") && !strings.Contains(path, "secrets") {
			return response, err
		}
		code := 0
		if response != nil {
			code = response.StatusCode
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, fmt.Sprintf("%s %s %d", request.Method, path[strings.LastIndex(path, "v1"):], code))
		return response, err
	})
}

// take gives the requests since the last time.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// about are the requests that hold all of some words.
func about(all []string, words ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(request string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(request, word) })
	})
}
