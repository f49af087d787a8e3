package workloadspread

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	spreads "github.com/kruisekit/kruisekit/internal/workloadspread"
)

// AllocatorOptions are the options of an Allocator. The zero value is the default of the reference.
type AllocatorOptions struct {
	// Versioned are the kinds, in lower case, whose pods are counted by version. Nil for deployment and replicaset.
	Versioned []string
	// Namespace of the manager, whose ConfigMap kruise-configuration lists further kinds of targets. Default
	// kruise-system.
	Namespace string
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Gather returns how long an Allocator gathers pods before its next write, by its last pause, and by the size and the
	// conflicts of its last write. Nil for pauses that grow to 0.4 seconds with conflicts, and end without.
	Gather func(last time.Duration, size, conflicts int) time.Duration
}

// Allocator gives new pods their subsets, and records what it gives in the statuses of the WorkloadSpreads. The webhook
// of new pods and that of disruptions ask the Allocator: it is the option Spreads of webhooks/pod and of
// webhooks/disruption. All replicas of a manager have one.
type Allocator struct {
	records *spreads.Allocator
}

// NewAllocator returns an Allocator that follows the WorkloadSpreads in the cache of a manager, on all replicas. It
// must be called before the manager starts, once for all that ask.
func NewAllocator(mgr ctrl.Manager, o AllocatorOptions) (*Allocator, error) {
	records, err := spreads.FromManager(mgr, spreads.Options(o))
	if err != nil {
		return nil, err
	}
	return &Allocator{records: records}, nil
}

// Ready waits until all WorkloadSpreads can be read. It returns at once if they can, also with a context that has
// ended.
func (a *Allocator) Ready(ctx context.Context) error { return a.records.Ready(ctx) }

// In returns the WorkloadSpreads of a namespace that the cache has, in no order. They must not be changed.
func (a *Allocator) In(namespace string) []*appsv1beta1.WorkloadSpread {
	return a.records.In(namespace)
}

// Allowed returns the kinds that the installation allows as targets besides the usual ones.
func (a *Allocator) Allowed(ctx context.Context) []schema.GroupKind { return a.records.Allowed(ctx) }

// Admit returns a new pod with what its subset adds; nil where the pod stays as it is. The request is the namespace of
// the admission request, and as its name the UID, which stands for a pod without a name. The review takes the pod as
// its subset makes it, nil for as it is, through what may still refuse the pod, and is called again where the pod gets
// another subset meanwhile. The pod is recorded once it is not refused. A nil review refuses nothing.
func (a *Allocator) Admit(
	ctx context.Context, request types.NamespacedName, pod *corev1.Pod,
	review func(context.Context, *corev1.Pod) error,
) (*corev1.Pod, error) {
	return a.records.Admit(ctx, spreads.Request{
		Namespace: request.Namespace, UID: types.UID(request.Name), Pod: pod, Review: review,
	})
}

// Depart records that the deletion of a pod was admitted. A failure is returned for logs alone: the controller observes
// the deletion anyway.
func (a *Allocator) Depart(ctx context.Context, pod *corev1.Pod) error {
	return a.records.Depart(ctx, pod)
}
