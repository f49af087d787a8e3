package pod

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// sidecarsFromManager binds the step to the caches of a manager, on all replicas. Of revisions it keeps only those of
// sets, in one namespace, once a set is pinned to one; of namespaces their metadata, once a set selects by their
// labels.
func sidecarsFromManager(mgr ctrl.Manager, o Options) (Step, error) {
	revisions, err := revisionCache(mgr, cmp.Or(o.Sidecars.Namespace, DefaultNamespace))
	if err != nil {
		return Step{}, err
	}
	index := NewIndex()
	// No informer of the cache of revisions runs before a set is pinned, so this waits for its start alone.
	f := &watches.Follower{
		Kind: scope.Kind(), Before: revisions.WaitForCacheSync, Put: index.decode,
		Delete: func(raw *unstructured.Unstructured) { index.Delete(raw.GetName()) },
	}
	if err := mgr.Add(replicated{revisions}); err != nil {
		return Step{}, fmt.Errorf("add the cache of revisions: %w", err)
	}
	if err := f.AddTo(mgr); err != nil {
		return Step{}, err
	}
	return Sidecars(SidecarLookups{
		Sets: index, Namespaces: mgr.GetCache(), Revisions: revisions, Live: mgr.GetAPIReader(), Filled: f.Wait,
	}, o.Sidecars)
}

func revisionCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	ofSets, err := labels.NewRequirement(appsv1beta1.SidecarSetNameLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select revisions of sets: %w", err)
	}
	revisions, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&appsv1.ControllerRevision{}: {
			Namespaces: map[string]cache.Config{namespace: {}}, Label: labels.NewSelector().Add(*ofSets),
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of revisions: %w", err)
	}
	return revisions, nil
}

// replicated is a cache that runs on every replica. A manager runs a cache that is restricted by kind or by namespace
// only on the leader, because such a cache does not declare that it needs no election.
type replicated struct{ cache.Cache }

// NeedLeaderElection returns false: all replicas answer.
func (replicated) NeedLeaderElection() bool { return false }

// decode files a set as it is stored.
func (x *Index) decode(ctx context.Context, raw *unstructured.Unstructured) {
	set, invalid, err := scope.Decode(raw)
	if err == nil && invalid != nil {
		x.PutInvalid(set, invalid)
		err = invalid
	} else if err == nil {
		err = x.Put(set)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to read a sidecarset in full, pods that it may select are rejected",
			"sidecarset", raw.GetName())
	}
}
