package workloads

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
)

// Options of a Kit.
type Options struct {
	// Kind is the kind of the workloads, in the version of owner references.
	Kind schema.GroupVersionKind
	// Binding are the clients, the clock and the recorder.
	Binding binding.Options
	// Dependents is what workloads have beside pods and revisions.
	Dependents DependentOptions
	// Stem is the name of the workload that a pod with a name can belong to. Pods without a controller are adopted by it,
	// and so are revisions whose names have it before the hash. Nil for a kind that adopts none.
	Stem func(pod string) (workload string, ok bool)
	// Cut is what Stem returns for the pods of a workload; nil for the name of the workload. See StemOf.
	Cut func(workload string) string
	// Scaling and Updating are the types of the conditions about failed writes.
	Scaling, Updating string
	Events            Events
	// Ask answers the questions of passes, see workload.Input.Ask.
	Ask func(ctx context.Context, pods []*corev1.Pod) error
	// Explain takes the notes of each pass.
	Explain func(ctx context.Context, name types.NamespacedName, notes []note.Note)
}

// Kit is what the reconciler of a kind of workloads reads, writes and remembers with.
type Kit struct {
	*binding.Binding
	*Dependents

	options Options
	memory  memory.Of[types.NamespacedName, Known]
	emitted memory.Texts[types.NamespacedName]
	// confirmed are the workloads that the cache shows as they are stored.
	confirmed stored.Confirmed
}

// Known is what is known of a workload beside what the API server stores. It may be lost at any time.
type Known struct {
	// Outdated is how many passes in a row were decided upon older objects.
	Outdated int
	// Repeats are the recent writes of pods.
	Repeats workload.Repeats

	rejected rejections
	// pause is how long changes of pods are gathered before the next pass.
	pause time.Duration
	// wait is what the workload waited for at the end of the last pass.
	wait conditions.Wait
	// verified is the UID of the workload whose pods were read past the cache since the process started.
	verified types.UID
}

// New returns the kit of one reconciler.
func New(reconciler string, c client.Client, o Options) (*Kit, error) {
	api, err := binding.New(reconciler, c, o.Binding)
	if err != nil {
		return nil, err
	}
	return &Kit{Binding: api, Dependents: NewDependents(api, o.Dependents), options: o}, nil
}

// Setup lets Observe find dependents, and orphans. It must come before the manager starts.
func (k *Kit) Setup(ctx context.Context, mgr ctrl.Manager, controllerName string) error {
	if err := k.Dependents.Setup(ctx, mgr, controllerName); err != nil {
		return err
	}
	if k.options.Stem == nil {
		return nil
	}
	return IndexOrphans(ctx, mgr.GetFieldIndexer(), k.options.Kind.Kind, k.options.Stem)
}

// IndexOrphans lets the kit of a kind find orphans, see Options.Stem.
func IndexOrphans(
	ctx context.Context, indexer client.FieldIndexer, kind string, stem func(pod string) (string, bool),
) error {
	if err := owned.IndexOrphans(ctx, indexer, &corev1.Pod{}, owned.Adopter{Kind: kind, Workload: stem}); err != nil {
		return fmt.Errorf("index orphaned pods: %w", err)
	}
	if err := owned.IndexOrphans(ctx, indexer, &appsv1.ControllerRevision{}, owned.Adopter{
		Kind: kind, Workload: OwnerOfRevision,
	}); err != nil {
		return fmt.Errorf("index orphaned revisions: %w", err)
	}
	return nil
}

// forget drops what is known of a workload that is gone.
func (k *Kit) forget(name types.NamespacedName) {
	k.Forget(name)
	k.memory.Forget(name)
	k.emitted.Forget(name)
	k.confirmed.Forget(name)
}
