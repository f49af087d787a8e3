package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

type configuration = admissionregistrationv1.MutatingWebhookConfiguration

func setOf(name string, generation int64) *appsv1beta1.SidecarSet {
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

// shelf has configurations, and applies entries as API servers do.
type shelf struct {
	mu  sync.Mutex
	all map[string]*configuration
	// fails are the writes that fail first, and writes all of them.
	fails, writes int
	// gets are the reads.
	gets int
	// silent gives no answer.
	silent bool
	// managers are the field managers of the writes.
	managers []string
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

func (s *shelf) Patch(_ context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if s.writes++; s.writes <= s.fails {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("busy"))
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	applied, have := &configuration{}, s.all[o.GetName()]
	if err := json.Unmarshal(data, applied); err != nil {
		return err
	}
	if have == nil {
		have = &configuration{}
	}
	if patch.Type() != types.ApplyPatchType || applied.ResourceVersion != have.ResourceVersion ||
		len(applied.Webhooks) != 1 {
		return fmt.Errorf("%s of %+v", patch.Type(), applied)
	}
	var o2 client.PatchOptions
	o2.ApplyOptions(options)
	s.managers = append(s.managers, o2.FieldManager)
	next := have.DeepCopy()
	next.ResourceVersion += "1"
	next.Webhooks = append(slices.DeleteFunc(next.Webhooks, func(e admissionregistrationv1.MutatingWebhook) bool {
		return e.Name == applied.Webhooks[0].Name
	}), applied.Webhooks...)
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
	large := setOf("a", 1)
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
			sets: []*appsv1beta1.SidecarSet{setOf("a", 1)},
			want: []string{"/mutate-pod-new/a/uid-a/1 main"},
		},
		"among others": {
			why:  "what is there stays, and has the CA",
			have: []*configuration{named(scope.ProvisionalConfiguration, theirs(), served("mpod.kb.io", "ca"))},
			sets: []*appsv1beta1.SidecarSet{setOf("a", 1), setOf("b", 1)},
			want: []string{"theirs.example.com", "mpod.kb.io", "/mutate-pod-new/a/uid-a/1 ca", "/mutate-pod-new/b/uid-b/1 ca"},
		},
		"a later one": {
			why:  "one entry for a set",
			have: []*configuration{named(scope.ProvisionalConfiguration, served("mpod.kb.io", "ca"))},
			sets: []*appsv1beta1.SidecarSet{setOf("a", 1), setOf("a", 2)},
			want: []string{"mpod.kb.io", "/mutate-pod-new/a/uid-a/2 ca"},
		},
		"a conflict": {
			why:   "another writer was first",
			have:  []*configuration{named(scope.ProvisionalConfiguration, served("mpod.kb.io", "ca"))},
			sets:  []*appsv1beta1.SidecarSet{setOf("a", 1)},
			fails: 1,
			want:  []string{"mpod.kb.io", "/mutate-pod-new/a/uid-a/1 ca"},
		},
		"conflicts": {
			why:   "it does not go on for ever",
			have:  []*configuration{named(scope.ProvisionalConfiguration, served("mpod.kb.io", "ca"))},
			sets:  []*appsv1beta1.SidecarSet{setOf("a", 1)},
			fails: 1000,
			want:  []string{"mpod.kb.io"},
			err:   "cannot be fulfilled",
		},
		"no CA": {
			why: "API servers would trust no answer",
			have: []*configuration{
				named(scope.ProvisionalConfiguration), named(scope.DefaultMainConfiguration, served("m.kb.io", "")),
			},
			sets: []*appsv1beta1.SidecarSet{setOf("a", 1)},
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
			have: []*configuration{named(scope.ProvisionalConfiguration, many(32)...)},
			sets: []*appsv1beta1.SidecarSet{setOf("a", 1)},
			err:  "wait already for a leader",
		},
		"no object": {
			why:  "it is created",
			have: []*configuration{named(scope.DefaultMainConfiguration, served("m.kb.io", "main"))},
			sets: []*appsv1beta1.SidecarSet{setOf("a", 1)},
			want: []string{"/mutate-pod-new/a/uid-a/1 main"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			api := &shelf{all: map[string]*configuration{}, fails: c.fails}
			for _, have := range c.have {
				api.all[have.Name] = have
			}
			w, err := scope.NewWriter(api, scope.WriterOptions{Pause: time.Nanosecond, Timeout: 250 * time.Millisecond})
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
			if api.writes > 10 || api.gets > 3*max(1, len(c.sets))+10 {
				t.Errorf("%d reads and %d writes", api.gets, api.writes)
			}
			if c.want == nil {
				if api.writes > 0 {
					t.Errorf("%s: it was written", c.why)
				}
				return
			}
			if diff := cmp.Diff(c.want, api.told()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			for _, m := range api.managers {
				if !scope.IsProvisional(m) {
					t.Errorf("%s: the field manager %q is not that of one entry", c.why, m)
				}
			}
		})
	}
}

// An API server that does not answer delays no request for longer than its timeout.
func TestTimeout(t *testing.T) {
	api := &shelf{silent: true}
	w, err := scope.NewWriter(api, scope.WriterOptions{Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Cover(t.Context(), setOf("a", 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// A set for which there is no room waits until a leader has made some, and the sets before it do not wait with it.
func TestRoom(t *testing.T) {
	api := &shelf{all: map[string]*configuration{
		scope.ProvisionalConfiguration: named(scope.ProvisionalConfiguration, many(31)...),
	}}
	looked := make(chan struct{}, 100)
	w, err := scope.NewWriter(&noticed{shelf: api, looked: looked}, scope.WriterOptions{
		Pause: time.Nanosecond, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Cover(t.Context(), setOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- w.Cover(t.Context(), setOf("b", 1)) }()
	for range 3 { // of the first set, and twice without room
		<-looked
	}
	api.mu.Lock()
	if len(api.told()) != 32 {
		t.Errorf("entries %q", api.told())
	}
	c := api.all[scope.ProvisionalConfiguration]
	c.Webhooks, c.ResourceVersion = c.Webhooks[31:], "swept"
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
