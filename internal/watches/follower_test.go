package watches

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// started is a cache of which handlers are handed to the test.
type started struct {
	cache.Cache

	handlers chan toolscache.ResourceEventHandler
	// synced reports that the handlers have seen everything.
	synced atomic.Bool
}

func (*started) WaitForCacheSync(context.Context) bool { return true }

func (s *started) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return &startedInformer{of: s}, nil
}

// startedInformer is an informer of such a cache.
type startedInformer struct {
	cache.Informer

	of *started
}

func (*startedInformer) HasSynced() bool { return true }

func (*startedInformer) IsStopped() bool { return false }

func (s *startedInformer) AddEventHandler(
	h toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	s.of.handlers <- h
	return registration{of: s.of}, nil
}

// registration is of a handler.
type registration struct {
	toolscache.ResourceEventHandlerRegistration

	of *started
}

func (r registration) HasSynced() bool { return r.of.synced.Load() }

// lateMapper answers the looks for a kind in their order, the last answer again and again.
type lateMapper struct {
	meta.RESTMapper

	answers []error
	looks   int
}

func (m *lateMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	err := m.answers[min(m.looks, len(m.answers)-1)]
	m.looks++
	return &meta.RESTMapping{}, err
}

// TestLateKind: objects are indexed also where their kind is installed after the start. Until then the index is
// complete without them, unless the API server does not answer. From then on it is not complete before it has the
// objects, which may be stored in an older version.
func TestLateKind(t *testing.T) {
	kind := appsv1beta1.GroupVersion.WithKind("SidecarSet")
	missing := &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	for name, c := range map[string]struct {
		why     string
		answers []error
		// ready are the looks after which the index is complete before the kind is installed.
		ready []bool
	}{
		"late":                 {"no set is stored before", []error{missing, missing, nil}, []bool{true, true}},
		"no answer":            {"sets may be stored", []error{errors.New("down"), nil}, []bool{false}},
		"no answer, then late": {"the second look counts", []error{errors.New("down"), missing, nil}, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			looks, mapper := make(chan struct{}), &lateMapper{answers: c.answers}
			from := &started{handlers: make(chan toolscache.ResourceEventHandler)}
			var calls []string
			f := &Follower{
				Kind: kind, Before: from.WaitForCacheSync,
				Put:    func(_ context.Context, raw *unstructured.Unstructured) { calls = append(calls, "put "+raw.GetName()) },
				Delete: func(raw *unstructured.Unstructured) { calls = append(calls, "delete "+raw.GetName()) },
			}
			f.bind(from, mapper)
			f.look = func(ctx context.Context) bool {
				select {
				case <-looks:
					return true
				case <-ctx.Done():
					return false
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- f.Start(ctx) }()

			for _, ready := range c.ready {
				if ready {
					if err := f.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
				} else if err := f.Wait(canceled(t)); err == nil {
					t.Errorf("%s: the index is taken for complete", c.why)
				}
				looks <- struct{}{}
			}
			handler := <-from.handlers
			if f.Wait(canceled(t)) == nil {
				t.Error("the index is taken for complete while it is filled")
			}
			from.synced.Store(true)
			if err := f.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			raw := &unstructured.Unstructured{}
			raw.SetName("late")
			handler.OnAdd(raw, true)
			handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: raw})
			if !slices.Equal(calls, []string{"put late", "delete late"}) {
				t.Errorf("%s: calls %q", c.why, calls)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if mapper.looks != len(c.answers) {
				t.Errorf("%d looks, want %d", mapper.looks, len(c.answers))
			}
		})
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
