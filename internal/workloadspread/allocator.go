package workloadspread

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/groupcommit"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// Options of an Allocator. The zero value is the default of the reference.
type Options struct {
	// Versioned are the kinds, in lower case, whose pods are counted by version; nil for subset.DefaultVersioned.
	Versioned []string
	// Namespace of the manager, whose ConfigMap kruise-configuration lists further kinds of targets. Default
	// kruise-system.
	Namespace string
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	if o.Versioned == nil {
		o.Versioned = subset.DefaultVersioned()
	}
	return o
}

// Lookups are what an Allocator reads and writes.
type Lookups struct {
	Spreads *Index
	// Client writes statuses of WorkloadSpreads.
	Client client.Client
	// Targets reads the targets. Its Live reads WorkloadSpreads after a conflict, and owners that the cache lacks.
	Targets *Targets
	// Filled waits until Spreads has all WorkloadSpreads; nil if there is nothing to wait for.
	Filled func(context.Context) error
}

// Allocator gives pods their subsets, and records them.
type Allocator struct {
	lookups Lookups
	options Options
	records *groupcommit.Committer[entry, *record]
	// owners are the controllers of workloads, by the UID of the workload.
	owners *cache.LRUExpireCache
}

// New returns an Allocator.
func New(l Lookups, o Options) (*Allocator, error) {
	if l.Spreads == nil || l.Client == nil || l.Targets == nil {
		return nil, errors.New("workloadspread: an index, a client and readers are required")
	}
	o = o.withDefaults()
	records := groupcommit.New(&store{groupcommit.Statuses[entry]{
		Kind: Kind(), Index: l.Spreads.Index, Client: l.Client, Reader: l.Targets.Live,
	}, l.Targets, o.Now})
	return &Allocator{lookups: l, options: o, records: records, owners: cache.NewLRUExpireCache(maxOwners)}, nil
}

// Ready waits until all WorkloadSpreads can be read. It returns at once if they can, also with a context that has
// ended.
func (d *Allocator) Ready(ctx context.Context) error {
	if d.lookups.Filled == nil {
		return nil
	}
	return d.lookups.Filled(ctx)
}

// In returns the WorkloadSpreads of a namespace that the cache has. They must not be changed.
func (d *Allocator) In(namespace string) []*appsv1beta1.WorkloadSpread {
	return d.lookups.Spreads.All(namespace)
}

// Allowed returns the kinds that the installation allows as targets besides the usual ones.
func (d *Allocator) Allowed(ctx context.Context) []schema.GroupKind {
	return d.lookups.Targets.Kinds.Read(ctx).Targets
}

// Depart records that the deletion of a pod was admitted. A failure is returned for logs alone: the controller observes
// the deletion anyway.
func (d *Allocator) Depart(ctx context.Context, pod *corev1.Pod) error {
	m, is := subset.MatchOf(pod)
	if !is || !subset.Active(pod) || metav1.GetControllerOfNoCopy(pod) == nil {
		return nil
	}
	ws := d.lookups.Spreads.Named(types.NamespacedName{Namespace: pod.Namespace, Name: m.Name})
	if ws == nil || isStatefulSet(ws) {
		return nil
	}
	if s := subset.Named(ws, m.Subset); s == nil || s.MaxReplicas == nil {
		return nil
	}
	found, err := d.find(ctx, pod.Namespace, pod)
	if err != nil || found == nil || found.Name != ws.Name { // the annotation may be anything
		return err
	}
	departure := &subset.Departure{
		Version: subset.VersionOf(pod, d.options.Versioned), Subset: m.Subset, ID: subset.IDOf(pod), Pod: pod.Name,
	}
	err = d.records.Commit(ctx, keyOf(ws), &record{departure: departure})
	if errors.Is(err, groupcommit.ErrGone) {
		return nil
	}
	return err
}
