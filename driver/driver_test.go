package driver_test

import (
	"cmp"
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
	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/note"
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
	err := driver.Run(t.Context(), driver.Writes(deletions("web-0", "web-1", "web-2", "web-3")...), options(s))
	var panicked *batches.PanicError
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
		writes    []*write.Write
		answer    error
		isolation driver.Isolation
		want      int
	}{
		"namespaces without an answer": {
			writes: deletions(names[:60]...), answer: errors.New("a webhook"), isolation: driver.Namespaces, want: 60,
		},
		"no answer":         {writes: deletions(names...), answer: errors.New("connection refused"), want: 1},
		"refused deletions": {writes: deletions(names...), answer: refused("x"), want: 100},
		"refused creations": {writes: creations, answer: refused("x"), want: 1},
		"creations whose name is there": {
			writes: creations, answer: apierrors.NewAlreadyExists(schema.GroupResource{}, "x"), want: 100,
		},
		"creations of unlike objects":    {writes: creations, answer: refused("x"), isolation: driver.Objects, want: 100},
		"an API server that is too busy": {writes: deletions(names...), answer: apierrors.NewTooManyRequests("", 1), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: func(*write.Write) error { return c.answer }}
			o := options(s)
			o.Isolation = c.isolation
			if err := driver.Run(t.Context(), driver.Writes(c.writes...), o); err == nil || len(s.sent) != c.want {
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
	if err := driver.Run(t.Context(), driver.Writes(append(deletions("old"), created)...), o); err != nil {
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

// noted is a pass with a note and a time.
type noted struct {
	driver.Pass[*write.Write]

	name  string
	after time.Duration
}

func (p noted) Notes() []note.Note          { return []note.Note{{Code: p.name}} }
func (p noted) RequeueAfter() time.Duration { return p.after }

func TestSequence(t *testing.T) {
	type step = driver.Step[*write.Write]
	writes := func(names ...string) func() (driver.Pass[*write.Write], error) {
		return func() (driver.Pass[*write.Write], error) { return driver.Writes(deletions(names...)...), nil }
	}
	none := func() (driver.Pass[*write.Write], error) { return nil, nil }
	fails := func() (driver.Pass[*write.Write], error) { return nil, errors.New("no plan") }
	for name, c := range map[string]struct {
		steps []step
		want  []string
		fail  bool
	}{
		"one after the other": {
			steps: []step{{Plan: writes("a")}, {Plan: none}, {Plan: writes("b")}}, want: []string{"a", "b"},
		},
		"a failure stops nothing": {
			steps: []step{{Plan: writes("bad")}, {Plan: writes("b")}}, want: []string{"bad", "b"}, fail: true,
		},
		"but that of a required step": {
			steps: []step{{Plan: writes("bad"), Required: true}, {Plan: writes("b")}}, want: []string{"bad"}, fail: true,
		},
		"a step without a plan":  {steps: []step{{Plan: fails}, {Plan: writes("b")}}, want: []string{"b"}, fail: true},
		"a required one without": {steps: []step{{Plan: fails, Required: true}, {Plan: writes("b")}}, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: func(w *write.Write) error {
				if w.Object.GetName() == "bad" {
					return refused("bad")
				}
				return nil
			}}
			err := driver.Run(t.Context(), driver.Sequence(c.steps...), options(s))
			var want []string
			for _, name := range c.want {
				want = append(want, "delete pod "+name)
			}
			if (err != nil) != c.fail || !slices.Equal(s.sent, want) {
				t.Errorf("%v after %q, want %q", err, s.sent, want)
			}
		})
	}
	first := noted{Pass: driver.Writes(), name: "a", after: time.Minute}
	second := noted{Pass: driver.Writes(), name: "b", after: time.Second}
	all := driver.Sequence(
		step{Plan: func() (driver.Pass[*write.Write], error) { return first, nil }},
		step{Plan: func() (driver.Pass[*write.Write], error) { return second, nil }},
	)
	_ = driver.Run(t.Context(), all, options(&server{}))
	if notes := all.Notes(); len(notes) != 2 || notes[1].Code != "b" || all.RequeueAfter() != time.Second {
		t.Errorf("%v, %v", notes, all.RequeueAfter())
	}
}

// request is a write with what its pass knows of it.
type request struct {
	*write.Write

	why string
}

// The answer to a write that is outdated is no failure, and a lifted pass takes the answers to its own writes.
// A pass that panics over an answer goes on, and has failed.
func TestPanicOfPass(t *testing.T) {
	s := &server{}
	pass := driver.Stage(deletions("web-0", "web-1"),
		func(w *write.Write, _ write.Object, _ error) ([]*write.Write, error) {
			if w.Object.GetName() == "web-0" {
				panic("no such thing")
			}
			return nil, nil
		})
	var panicked *batches.PanicError
	if err := driver.Run(t.Context(), pass, options(s)); !errors.As(err, &panicked) || len(s.sent) != 2 {
		t.Errorf("got %v after %v", err, s.sent)
	}
}

// What follows from an answer is sent, and errors come in the order of the requests.
func TestStage(t *testing.T) {
	first, second := deletions("a", "b")[0], deletions("a", "b")[1]
	question := &write.Write{Verb: write.Get, Object: second.Object}
	pass := driver.Stage([]*write.Write{first, second},
		func(w *write.Write, _ write.Object, err error) ([]*write.Write, error) {
			if w == second {
				return []*write.Write{question}, nil
			}
			return nil, fmt.Errorf("answered %s: %w", w, cmp.Or(err, errors.ErrUnsupported))
		})
	requests := pass.Next()
	if follows := pass.Answer(time.Time{}, second, nil, nil); len(follows) != 1 || follows[0] != question {
		t.Errorf("%v follow", follows)
	}
	pass.Answer(time.Time{}, question, nil, nil)
	pass.Answer(time.Time{}, first, nil, nil)
	want := "answered delete pod a: unsupported operation\nanswered get pod b: unsupported operation"
	if len(requests) != 2 || len(pass.Next()) > 0 || pass.Err() == nil || pass.Err().Error() != want {
		t.Errorf("%d requests, then %v, want %s", len(requests), pass.Err(), want)
	}
}

func TestLift(t *testing.T) {
	s := &server{answer: func(w *write.Write) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, w.Object.GetName())
	}}
	var answered []string
	pass := driver.Lift(driver.Writes(deletions("a", "b")...), func(w *write.Write) request { return request{w, "trim"} })
	err := driver.Run(t.Context(), pass, driver.Options[request]{
		Send: s.send,
		Answered: func(r request, _ write.Object, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			answered = append(answered, fmt.Sprint(r.why, " ", r.Object.GetName(), " ", apierrors.IsNotFound(err)))
		},
	})
	slices.Sort(answered)
	if err != nil || !slices.Equal(answered, []string{"trim a true", "trim b true"}) {
		t.Errorf("%v, answered %q", err, answered)
	}
}
