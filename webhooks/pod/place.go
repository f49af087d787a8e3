package pod

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/following"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// PlaceLookups find what is recorded of a pod.
type PlaceLookups struct {
	// States has all PersistentPodStates.
	States *podstates.Index
	// Filled waits until States has those of the cache. It returns at once if so, also with a context that has ended; nil
	// if there is nothing to wait for.
	Filled func(context.Context) error
}

// Place returns the step that steers a pod back to the topology that a PersistentPodState has recorded of the pod of
// its name.
func Place(l PlaceLookups) Step {
	source := scope.States()
	return Step{
		Name: source.Step, Scope: source, Ready: l.Filled, Apply: func(ctx context.Context, r Request) (Result, error) {
			owner := metav1.GetControllerOfNoCopy(r.Pod)
			if owner == nil || r.Pod.Name == "" {
				return Result{}, nil
			}
			if l.Filled != nil {
				if err := l.Filled(ctx); err != nil {
					return Result{}, &LookupError{What: "PersistentPodStates", Err: err}
				}
			}
			state := l.States.First(r.Namespace, owner)
			if state == nil {
				return Result{}, nil
			}
			return Result{Pod: podstate.Steer(r.Pod, state)}, nil
		},
	}
}

// placeFromManager binds the step to the cache of a manager, on all replicas.
func placeFromManager(mgr ctrl.Manager, _ Options) (Step, error) {
	index := podstates.NewIndex()
	f := &following.Follower{
		Kind: podstates.Kind(),
		Put: func(ctx context.Context, raw *unstructured.Unstructured) {
			if err := index.Put(raw); err != nil {
				log.FromContext(ctx).Error(err, "Failed to read a PersistentPodState, which steers no pod",
					"persistentpodstate", client.ObjectKeyFromObject(raw))
			}
		},
		Delete: func(raw *unstructured.Unstructured) { index.Delete(client.ObjectKeyFromObject(raw)) },
	}
	if err := f.AddTo(mgr); err != nil {
		return Step{}, err
	}
	return Place(PlaceLookups{States: index, Filled: f.Wait}), nil
}
