package metrics

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// StalledOptions of Follow.
type StalledOptions struct {
	// NoGenerations is for a kind whose status does not name the generation that it describes.
	NoGenerations bool
	// NoCondition is for a kind whose status has no condition Stalled: its reconciler calls Set.
	NoCondition bool
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Follower follows the objects of one kind. It runs on the leader.
type Follower struct {
	metrics *Stalled
	cache   cache.Cache
	kind    schema.GroupVersionKind
	options StalledOptions
}

// Follow returns a runnable that keeps the metrics of a kind in line with a cache.
func (m *Stalled) Follow(c cache.Cache, kind schema.GroupVersionKind, o StalledOptions) *Follower {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	return &Follower{metrics: m, cache: c, kind: kind, options: o}
}

// Start follows the objects until the context ends.
func (f *Follower) Start(ctx context.Context) error {
	informer, err := f.cache.GetInformer(ctx, stored.Untyped(f.kind), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("follow %s: %w", f.kind.Kind, err)
	}
	f.begin()
	defer f.end()
	registration, err := informer.AddEventHandler(watches.UntypedHandler(f.put, f.remove))
	if err != nil {
		return fmt.Errorf("follow %s: %w", f.kind.Kind, err)
	}
	<-ctx.Done()
	return informer.RemoveEventHandler(registration)
}

func (f *Follower) begin() {
	f.metrics.mu.Lock()
	defer f.metrics.mu.Unlock()
	if of := f.metrics.of(f.kind.Kind); !f.options.NoGenerations {
		of.now = f.options.Now
	}
}

func (f *Follower) end() {
	f.metrics.mu.Lock()
	defer f.metrics.mu.Unlock()
	delete(f.metrics.kinds, f.kind.Kind)
}

func (f *Follower) put(raw *unstructured.Unstructured) {
	behind := !f.options.NoGenerations && raw.GetDeletionTimestamp() == nil && raw.GetGeneration() != observed(raw)
	f.metrics.keep(f.kind.Kind, client.ObjectKeyFromObject(raw), func(s *state) {
		if !f.options.NoCondition {
			s.reason = reasonOf(raw)
		}
		switch {
		case !behind:
			s.behind = time.Time{}
		case s.behind.IsZero():
			s.behind = f.options.Now()
		}
	})
}

func (f *Follower) remove(raw *unstructured.Unstructured) {
	f.metrics.keep(f.kind.Kind, client.ObjectKeyFromObject(raw), func(s *state) { *s = state{} })
}

func observed(raw *unstructured.Unstructured) int64 {
	generation, _, _ := stored.Value[int64](raw, "status", "observedGeneration")
	return generation
}

// reasonOf returns why an object stands still, as its status reports. One that is deleted does not.
func reasonOf(raw *unstructured.Unstructured) Reason {
	list, _, _ := stored.Value[[]any](raw, "status", "conditions")
	for _, c := range list {
		condition, _ := c.(map[string]any)
		if condition["type"] != workloads.Stalled || raw.GetDeletionTimestamp() != nil {
			continue
		}
		status, _ := condition["status"].(string)
		code, _ := condition["reason"].(string)
		if status == string(corev1.ConditionTrue) || status == string(corev1.ConditionUnknown) {
			return Reason{Status: status, Code: code}
		}
	}
	return Reason{}
}
