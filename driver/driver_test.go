package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
}

func deletions(names ...string) []*write.Write {
	var writes []*write.Write
	for _, name := range names {
		writes = append(writes, &write.Write{Verb: write.Delete, Object: pod(name)})
	}
	return writes
}

// server answers writes, and records them.
type server struct {
	mu     sync.Mutex
	sent   []string
	answer func(*write.Write) error
}

func (s *server) send(_ context.Context, w *write.Write) (write.Object, error) {
	s.mu.Lock()
	s.sent = append(s.sent, w.String())
	s.mu.Unlock()
	if s.answer == nil {
		return w.Object, nil
	}
	return w.Object, s.answer(w)
}

func options(s *server) driver.Options[*write.Write] {
	return driver.Options[*write.Write]{Send: s.send}
}

func refused(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, errors.New("a policy"))
}

// One refused write stops no other one, and is the only failure. A panic is a failure of its write.
func TestRun(t *testing.T) {
	s := &server{answer: func(w *write.Write) error {
		switch w.Object.GetName() {
		case "web-0":
			return refused("web-0")
		case "web-1":
			panic("no such thing")
		}
		return nil
	}}
	err := driver.Run(t.Context(), writes(deletions("web-0", "web-1", "web-2", "web-3")...), options(s))
	var panicked *driver.PanicError
	if !apierrors.IsForbidden(err) || !errors.As(err, &panicked) || len(s.sent) != 4 {
		t.Errorf("%v after %q", err, s.sent)
	}
}

// An API server that does not answer is asked for one write of each size of a batch, and creations end with a refusal.
func TestStops(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("web-%d", i))
	}
	creations := deletions(names...)
	for _, w := range creations {
		w.Verb = write.Create
	}
	for name, c := range map[string]struct {
		writes []*write.Write
		answer error
		want   int
	}{
		"no answer":         {writes: deletions(names...), answer: errors.New("connection refused"), want: 1},
		"refused deletions": {writes: deletions(names...), answer: refused("x"), want: 100},
		"refused creations": {writes: creations, answer: refused("x"), want: 1},
		"creations whose name is there": {
			writes: creations, answer: apierrors.NewAlreadyExists(schema.GroupResource{}, "x"), want: 100,
		},
		"an API server that is too busy": {writes: deletions(names...), answer: apierrors.NewTooManyRequests("", 1), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: func(*write.Write) error { return c.answer }}
			if err := driver.Run(t.Context(), writes(c.writes...), options(s)); err == nil || len(s.sent) != c.want {
				t.Errorf("%v after %d writes, want %d", err, len(s.sent), c.want)
			}
		})
	}
}

// asks is a pass that asks whether it may delete a pod.
type asks struct {
	driver.Pass[*write.Write]

	pod  *corev1.Pod
	done bool
	err  error
}

func (p *asks) Next() []*write.Write {
	if p.done {
		return nil
	}
	p.done = true
	return []*write.Write{{Verb: write.Ask, Object: p.pod}}
}

func (p *asks) Answer(_ time.Time, w *write.Write, _ write.Object, err error) []*write.Write {
	if w.Verb == write.Ask && err == nil {
		return deletions(p.pod.Name)
	}
	p.err = errors.Join(p.err, err)
	return nil
}

func (p *asks) Err() error { return p.err }

func TestAsk(t *testing.T) {
	no := errors.New("no room")
	for name, c := range map[string]struct {
		ask  func(context.Context, *write.Write) error
		want []string
		fail bool
	}{
		"allowed":    {ask: func(context.Context, *write.Write) error { return nil }, want: []string{"delete pod web-0"}},
		"refused":    {ask: func(context.Context, *write.Write) error { return no }, fail: true},
		"unanswered": {fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{}
			o := options(s)
			o.Ask = c.ask
			err := driver.Run(t.Context(), &asks{pod: pod("web-0")}, o)
			if (err != nil) != c.fail || !slices.Equal(s.sent, c.want) {
				t.Errorf("%v after %q", err, s.sent)
			}
		})
	}
}

// A ledger knows what was answered before the pass goes on.
func TestLedgers(t *testing.T) {
	pods := ledger.New[*corev1.Pod](nil, time.Now)
	claims := ledger.New[*corev1.PersistentVolumeClaim](nil, time.Now)
	owner := types.NamespacedName{Namespace: "shop", Name: "web"}
	o := options(&server{})
	o.Owner, o.Ledgers = owner, []driver.Recorder{pods, claims}
	created := &write.Write{Verb: write.Create, Object: pod("new")}
	if err := driver.Run(t.Context(), writes(append(deletions("old"), created)...), o); err != nil {
		t.Fatal(err)
	}
	all, _, err := pods.Overlay(t.Context(), owner, []*corev1.Pod{pod("old")})
	if err != nil || len(all) != 1 || all[0].Name != "new" {
		t.Errorf("%v, %v", all, err)
	}
	if all, _, err := claims.Overlay(t.Context(), owner, nil); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// panics is a pass that panics over the answer about one pod.
type panics struct{ driver.Pass[*write.Write] }

func (p panics) Answer(now time.Time, w *write.Write, object write.Object, err error) []*write.Write {
	if w.Object.GetName() == "web-0" {
		panic("no such thing")
	}
	return p.Pass.Answer(now, w, object, err)
}

// A pass that panics over an answer goes on, and has failed.
func TestPanicOfPass(t *testing.T) {
	s := &server{}
	pass := panics{writes(deletions("web-0", "web-1")...)}
	var panicked *driver.PanicError
	if err := driver.Run(t.Context(), pass, options(s)); !errors.As(err, &panicked) || len(s.sent) != 2 {
		t.Errorf("got %v after %v", err, s.sent)
	}
}

// plain is a pass of writes that nothing follows.
type plain struct {
	writes []*write.Write
	failed error
}

func writes(all ...*write.Write) *plain { return &plain{writes: all} }

func (p *plain) Next() (next []*write.Write) {
	next, p.writes = p.writes, nil
	return next
}

func (p *plain) Answer(_ time.Time, _ *write.Write, _ write.Object, err error) []*write.Write {
	p.failed = errors.Join(p.failed, err)
	return nil
}

func (p *plain) Err() error { return p.failed }
