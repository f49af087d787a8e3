package provisional_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/scope/provisional"
)

type configuration = admissionregistrationv1.MutatingWebhookConfiguration

func newSet(name string, generation int64) *appsv1beta1.SidecarSet {
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), Generation: generation,
	}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	return set
}

func named(name string, entries ...admissionregistrationv1.MutatingWebhook) *configuration {
	return &configuration{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}, Webhooks: entries}
}

// served is an entry of the service with a CA.
func served(name, ca string) admissionregistrationv1.MutatingWebhook {
	c := scope.Reach{Namespace: scope.DefaultNamespace, Service: scope.DefaultService, CABundle: []byte(ca)}.Client()
	return admissionregistrationv1.MutatingWebhook{Name: name, ClientConfig: c}
}

func theirs() admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{Name: "theirs.example.com"}
}

func many(n int) []admissionregistrationv1.MutatingWebhook {
	var all []admissionregistrationv1.MutatingWebhook
	for i := range n {
		all = append(all, served(fmt.Sprintf("mpod-new-%016x.kb.io", i), "ca"))
	}
	return all
}

// shelf has configurations, and applies patches as API servers do.
type shelf struct {
	mu  sync.Mutex
	all map[string]*configuration
	// fails are the patches that fail first, and patches all of them.
	fails, patches int
	// gets are the reads.
	gets int
	// silent gives no answer.
	silent bool
	// held, if not nil, is called before each patch.
	held chan chan struct{}
}

func (s *shelf) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.silent {
		<-ctx.Done()
		return ctx.Err()
	}
	s.gets++
	have, ok := s.all[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	have.DeepCopyInto(into.(*configuration))
	return nil
}

func (s *shelf) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.patches++
	if s.all[o.GetName()] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
	}
	created := o.(*configuration).DeepCopy()
	created.ResourceVersion = "1"
	s.all[o.GetName()] = created
	return nil
}

func (s *shelf) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if s.held != nil {
		leave := make(chan struct{})
		s.held <- leave
		<-leave
	}
	if s.patches++; s.patches <= s.fails {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("busy"))
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	decoded, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return err
	}
	before, err := json.Marshal(s.all[o.GetName()])
	if err != nil {
		return err
	}
	after, err := decoded.Apply(before)
	if err != nil {
		return err
	}
	next := &configuration{}
	if err := json.Unmarshal(after, next); err != nil {
		return err
	}
	next.ResourceVersion += "1"
	s.all[o.GetName()] = next
	return nil
}

// told is what there is of entries: their names, or of those written ahead the paths and CAs.
func (s *shelf) told() []string {
	var all []string
	for _, w := range s.all[scope.ProvisionalConfiguration].Webhooks {
		text := w.Name
		if scope.IsProvisional(w.Name) {
			text = *w.ClientConfig.Service.Path + " " + string(w.ClientConfig.CABundle)
		}
		all = append(all, text)
	}
	return all
}

func TestCover(t *testing.T) {
	large := newSet("a", 1)
	apps := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn}
	for i := range 5000 {
		apps.Values = append(apps.Values, fmt.Sprintf("app-%d", i))
	}
	large.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{apps}}
	cases := map[string]struct {
		why   string
		have  []*configuration
		sets  []*appsv1beta1.SidecarSet
		fails int // patches that fail first
		want  []string
		err   string
	}{
		"the first": {
			why: "the CA is that of the main configuration",
			have: []*configuration{
				named(scope.ProvisionalConfiguration), named(scope.DefaultMainConfiguration, served("m.kb.io", "main")),
			},
			sets: []*appsv1beta1.SidecarSet{newSet("a", 1)},
			want: []string{"/mutate-pod-new/a/uid-a/1 main"},
		},
		"among others": {
			why:  "what is there stays, and has the CA",
			have: []*configuration{named(scope.ProvisionalConfiguration, theirs(), served("mpod.kb.io", "ca"))},
			sets: []*appsv1beta1.SidecarSet{newSet("a", 1), newSet("b", 1)},
			want: []string{"theirs.example.com", "mpod.kb.io", "/mutate-pod-new/a/uid-a/1 ca", "/mutate-pod-new/b/uid-b/1 ca"},
		},
		"a later one": {
			why:  "one entry for a set",
			have: []*configuration{named(scope.ProvisionalConfiguration, served("mpod.kb.io", "ca"))},
			sets: []*appsv1beta1.SidecarSet{newSet("a", 1), newSet("a", 2)},
			want: []string{"mpod.kb.io", "/mutate-pod-new/a/uid-a/2 ca"},
		},
		"a conflict": {
			why:   "another writer was first",
			have:  []*configuration{named(scope.ProvisionalConfiguration, served("mpod.kb.io", "ca"))},
			sets:  []*appsv1beta1.SidecarSet{newSet("a", 1)},
			fails: 3,
			want:  []string{"mpod.kb.io", "/mutate-pod-new/a/uid-a/1 ca"},
		},
		"conflicts": {
			why:   "it does not go on for ever",
			have:  []*configuration{named(scope.ProvisionalConfiguration, served("mpod.kb.io", "ca"))},
			sets:  []*appsv1beta1.SidecarSet{newSet("a", 1)},
			fails: 1000,
			want:  []string{"mpod.kb.io"},
			err:   "cannot be fulfilled",
		},
		"no CA": {
			why: "API servers would trust no answer",
			have: []*configuration{
				named(scope.ProvisionalConfiguration), named(scope.DefaultMainConfiguration, served("m.kb.io", "")),
			},
			sets: []*appsv1beta1.SidecarSet{newSet("a", 1)},
			err:  "no CA",
		},
		"far too long": {
			why:  "API servers keep each entry in memory",
			have: []*configuration{named(scope.ProvisionalConfiguration, served("mpod.kb.io", "ca"))},
			sets: []*appsv1beta1.SidecarSet{large},
			err:  "more than 32768 bytes",
		},
		"no UID": {
			why:  "its states could not be distinguished",
			have: []*configuration{named(scope.ProvisionalConfiguration)},
			sets: []*appsv1beta1.SidecarSet{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
			err:  "no UID",
		},
		"no room": {
			why:  "without a leader API servers evaluate each entry for each pod",
			have: []*configuration{named(scope.ProvisionalConfiguration, many(8)...)},
			sets: []*appsv1beta1.SidecarSet{newSet("a", 1)},
			err:  "wait already for a leader",
		},
		"no object": {
			why:  "it is created",
			have: []*configuration{named(scope.DefaultMainConfiguration, served("m.kb.io", "main"))},
			sets: []*appsv1beta1.SidecarSet{newSet("a", 1)},
			want: []string{"/mutate-pod-new/a/uid-a/1 main"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			api := &shelf{all: map[string]*configuration{}, fails: c.fails}
			for _, have := range c.have {
				api.all[have.Name] = have
			}
			w, err := provisional.New(api, provisional.Options{Pause: time.Nanosecond, Timeout: 250 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			err = nil
			for _, set := range c.sets {
				err = errors.Join(err, w.Cover(t.Context(), set))
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%s: %v", c.why, err)
			}
			if api.patches > 10 || api.gets > 3*max(1, len(c.sets))+10 {
				t.Errorf("%d reads and %d writes", api.gets, api.patches)
			}
			if c.want == nil {
				if api.patches > 0 {
					t.Errorf("%s: it was written", c.why)
				}
				return
			}
			if diff := cmp.Diff(c.want, api.told()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// An API server that does not answer delays no request for longer than its timeout.
func TestTimeout(t *testing.T) {
	api := &shelf{silent: true}
	w, err := provisional.New(api, provisional.Options{Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Cover(t.Context(), newSet("a", 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// Sets that come while one is written are written together.
func TestTogether(t *testing.T) {
	api := &shelf{all: map[string]*configuration{
		scope.ProvisionalConfiguration: named(scope.ProvisionalConfiguration),
		scope.DefaultMainConfiguration: named(scope.DefaultMainConfiguration, served("m.kb.io", "ca")),
	}, held: make(chan chan struct{})}
	w, err := provisional.New(api, provisional.Options{Pause: time.Nanosecond, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	const many = 8
	var all, asking sync.WaitGroup
	cover := func(i int) {
		asking.Add(1)
		all.Add(1)
		go func() {
			defer all.Done()

			asking.Done()
			if err := w.Cover(t.Context(), newSet(fmt.Sprintf("s-%d", i), 1)); err != nil {
				t.Error(err)
			}
		}()
	}
	cover(0)
	first := <-api.held
	for i := 1; i < many; i++ {
		cover(i)
	}
	asking.Wait()
	go func() {
		all.Wait()
		close(api.held)
	}()
	close(first)
	for leave := range api.held {
		close(leave)
	}
	if n := len(api.told()); n != many {
		t.Errorf("%d entries", n)
	}
	if api.patches > many {
		t.Errorf("%d patches for %d sets", api.patches, many)
	}
	t.Logf("%d patches for %d sets", api.patches, many)
}

// Who cannot write for a reason of his own spoils it for no other.
func TestApart(t *testing.T) {
	api := &shelf{
		all: map[string]*configuration{
			scope.ProvisionalConfiguration: named(scope.ProvisionalConfiguration, served("mpod.kb.io", "ca")),
		},
		held: make(chan chan struct{}),
	}
	w, err := provisional.New(api, provisional.Options{Pause: time.Nanosecond, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	failing, good := make(chan error), make(chan error)
	api.fails = 6
	go func() { failing <- w.Cover(t.Context(), newSet("a", 1)) }()
	leave := <-api.held
	go func() { good <- w.Cover(t.Context(), newSet("b", 1)) }()
	close(leave)
	for range api.fails - 1 {
		close(<-api.held)
	}
	err = <-failing
	if !apierrors.IsConflict(err) {
		t.Errorf("%v", err)
	}
	close(<-api.held)
	if err := <-good; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"mpod.kb.io", "/mutate-pod-new/b/uid-b/1 ca"}, api.told()); diff != "" {
		t.Error(diff)
	}
}

// A set for which there is no room waits until a leader has made some, and the sets before it do not wait with it.
func TestRoom(t *testing.T) {
	api := &shelf{all: map[string]*configuration{
		scope.ProvisionalConfiguration: named(scope.ProvisionalConfiguration, many(7)...),
	}}
	looked := make(chan struct{}, 100)
	w, err := provisional.New(&noticed{shelf: api, looked: looked}, provisional.Options{
		Pause: time.Nanosecond, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Cover(t.Context(), newSet("a", 1)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- w.Cover(t.Context(), newSet("b", 1)) }()
	for range 3 { // of the first set, and twice without room
		<-looked
	}
	api.mu.Lock()
	if len(api.told()) != 8 {
		t.Errorf("entries %q", api.told())
	}
	c := api.all[scope.ProvisionalConfiguration]
	c.Webhooks, c.ResourceVersion = c.Webhooks[7:], "swept"
	api.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/mutate-pod-new/a/uid-a/1 ca", "/mutate-pod-new/b/uid-b/1 ca"}, api.told()); diff != "" {
		t.Error(diff)
	}
}

// noticed reports each read.
type noticed struct {
	*shelf

	looked chan struct{}
}

func (n *noticed) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	n.looked <- struct{}{}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shelf.Get(ctx, key, into, o...)
}

func (n *noticed) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shelf.Patch(ctx, o, patch, options...)
}
