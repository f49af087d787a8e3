package pod

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/watches"
)

// placeLookups find what is recorded of a pod.
type placeLookups struct {
	// states has all PersistentPodStates.
	states *podstates.Index
	// filled waits until states has those of the cache. It returns at once if so, also with a context that has ended; nil
	// if there is nothing to wait for.
	filled func(context.Context) error
}

// placePods returns the step that steers a pod back to the topology that a PersistentPodState has recorded of the pod
// of its name.
func placePods(l placeLookups) Step {
	return Step{
		Name: scope.States().Step, Ready: l.filled, Apply: func(ctx context.Context, r Request) (Result, error) {
			owner := metav1.GetControllerOfNoCopy(r.Pod)
			if owner == nil || r.Pod.Name == "" {
				return Result{}, nil
			}
			if l.filled != nil {
				if err := l.filled(ctx); err != nil {
					return Result{}, &LookupError{What: "PersistentPodStates", Err: err}
				}
			}
			state := l.states.First(r.Namespace, owner)
			if state == nil {
				return Result{}, nil
			}
			return Result{Pod: podstate.Steer(r.Pod, state)}, nil
		},
	}
}

// placeFromManager binds the step to the cache of a manager, on all replicas.
func placeFromManager(mgr ctrl.Manager) (Step, error) {
	index := podstates.NewIndex()
	f := &watches.Follower{
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
	return placePods(placeLookups{states: index, filled: f.Wait}), nil
}
