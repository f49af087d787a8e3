package workloads

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/ledger"
)

// DependentOptions say what a workload has beside pods and revisions.
type DependentOptions struct {
	// Claims means that pods have volume claims of their own.
	Claims bool
	// Successors means that a pod must not be created before another one is gone. A pod whose deletion the cache does not
	// show yet is observed as one that terminates; otherwise it is left out.
	Successors bool
	// PullJobs means that nodes pull images ahead of updates.
	PullJobs bool
}

// Dependents reads and writes the dependents of all workloads of a kind.
type Dependents struct {
	DependentOptions

	api       *binding.Binding
	pods      *ledger.Ledger[*corev1.Pod]
	claims    *ledger.Ledger[*corev1.PersistentVolumeClaim]
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	jobs      *ledger.Ledger[*metav1.PartialObjectMetadata]
}

// NewDependents returns the dependents of the workloads of one reconciler.
func NewDependents(api *binding.Binding, o DependentOptions) *Dependents {
	return &Dependents{
		DependentOptions: o, api: api,
		pods:      lean.NewWrites(api.Live, api.Now),
		claims:    ledger.New[*corev1.PersistentVolumeClaim](api.Live, api.Now),
		revisions: ledger.New[*appsv1.ControllerRevision](api.Live, api.Now),
		jobs:      ledger.New[*metav1.PartialObjectMetadata](api.Live, api.Now),
	}
}

// Setup lets Observe find dependents by their owner. Pull jobs are left out where they are not installed. It must come
// before the manager starts.
func (d *Dependents) Setup(ctx context.Context, mgr ctrl.Manager, controllerName string) error {
	if d.PullJobs {
		installed, err := binding.Installed(mgr.GetRESTMapper(), pullJobKind())
		if err != nil {
			return err
		}
		if d.PullJobs = installed; !installed {
			mgr.GetLogger().Info("Disabled the pre-download of images, ImagePullJobs are not installed",
				"controller", controllerName)
		}
	}
	return d.index(ctx, mgr.GetFieldIndexer())
}

func (d *Dependents) index(ctx context.Context, indexer client.FieldIndexer) error {
	kinds := []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}}
	if d.Claims {
		kinds = append(kinds, &corev1.PersistentVolumeClaim{})
	}
	if d.PullJobs {
		kinds = append(kinds, PullJobMetadata(&v1beta1.ImagePullJob{}))
	}
	for _, object := range kinds {
		if err := owned.Index(ctx, indexer, object); err != nil {
			return fmt.Errorf("index %T: %w", object, err)
		}
	}
	return nil
}

// Forget drops the writes of a workload that is gone.
func (d *Dependents) Forget(owner types.NamespacedName) {
	d.pods.Forget(owner)
	d.claims.Forget(owner)
	d.revisions.Forget(owner)
	d.jobs.Forget(owner)
}

// Ledgers record the writes of all that workloads have.
func (d *Dependents) Ledgers() []driver.Recorder {
	return []driver.Recorder{d.pods, d.claims, d.revisions, pullJobs{Ledger: d.jobs}}
}

// NamedClaims reads claims by their names, those that terminate included, as the own writes left them. It is for a
// workload that does not control its claims, so that no index by owner finds them. recheckAfter is when to look again;
// zero for never.
func (d *Dependents) NamedClaims(
	ctx context.Context, owner types.NamespacedName, names []string,
) (claims map[string]*corev1.PersistentVolumeClaim, recheckAfter time.Duration, err error) {
	cached := make([]*corev1.PersistentVolumeClaim, 0, len(names))
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
		claim := &corev1.PersistentVolumeClaim{}
		switch err := d.api.Client.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: name}, claim,
			&client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)}); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, 0, fmt.Errorf("get claim %s: %w", name, err)
		default:
			cached = append(cached, claim)
		}
	}
	all, recheckAfter, err := d.claims.Overlay(ctx, owner, cached)
	if err != nil {
		return nil, 0, fmt.Errorf("read claims: %w", err)
	}
	claims = make(map[string]*corev1.PersistentVolumeClaim, len(all))
	for _, claim := range all {
		if wanted[claim.Name] {
			claims[claim.Name] = claim
		}
	}
	return claims, recheckAfter, nil
}
