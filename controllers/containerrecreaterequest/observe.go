package containerrecreaterequest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/stored"
)

type request = v1beta1.ContainerRecreateRequest

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	request *request
	// malformed says which part of the request cannot be read and is left out.
	malformed error
	// pod of the name in the request; nil where there is none, or where it does not matter.
	pod *corev1.Pod
	// others are the requests of the same pod that are not over.
	others []*request
	now    time.Time
}

func (s *snapshot) input() containerrestart.Input {
	return containerrestart.Input{Request: s.request, Pod: s.pod, Others: s.others, Now: s.now}
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.request) }

// over says whether nothing more happens for a request than cleaning up.
func over(r *request) bool {
	return r.DeletionTimestamp != nil || r.Status.CompletionTime != nil ||
		r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.requests.Latest(ctx, r.api.Cached, name)
	if err != nil || latest.Object == nil {
		r.decoded.Forget(name)
		return nil, err
	}
	s := &snapshot{now: r.api.Now()}
	if s.request, s.malformed, err = decode(latest.Object); err != nil {
		return nil, err
	}
	if s.pod, err = r.podOf(ctx, s.request); err != nil || over(s.request) {
		return s, err
	}
	s.others, err = r.ofPod(ctx, name.Namespace, s.request.Labels[v1beta1.ContainerRecreateRequestPodUIDKey])
	return s, err
}

// decode reads a request as far as it can be read: of a spec that is none only the name of the pod, of such a status
// nothing. The schema lets numbers and times pass that the types do not hold.
func decode(raw *unstructured.Unstructured) (r *request, malformed, err error) {
	r, malformed, err = stored.Decode[request](raw)
	if err != nil {
		malformed = err
		rest := maps.Clone(raw.Object)
		delete(rest, "status")
		r, _, err = stored.Decode[request](&unstructured.Unstructured{Object: rest})
	}
	if err != nil || malformed == nil {
		return r, nil, err
	}
	r.Spec.PodName, _, _ = stored.Value[string](raw, "spec", "podName")
	return r, malformed, nil
}

// podOf reads the pod of a request, if it matters. The cache may lag behind that of requests. What would follow from a
// pod that is missing there cannot be taken back, and neither can it when a pod is given up that does not show yet what
// was done to it.
func (r *Reconciler) podOf(ctx context.Context, of *request) (*corev1.Pod, error) {
	name := types.NamespacedName{Namespace: of.Namespace, Name: of.Spec.PodName}
	if name.Name == "" || len(path.IsValidPathSegmentName(name.Name)) > 0 {
		return nil, nil // no pod has such a name, and the API server rejects a read of it
	}
	if over(of) {
		if !slices.Contains(of.Finalizers, v1beta1.ContainerRecreateRequestUnreadyAcquiredKey) {
			return nil, nil
		}
		return stored.Find[corev1.Pod](ctx, r.api.Live, name)
	}
	pod, err := stored.Find[corev1.Pod](ctx, r.api.Client, name)
	if err != nil || pod != nil && string(pod.UID) == of.Labels[v1beta1.ContainerRecreateRequestPodUIDKey] {
		return pod, err
	}
	return stored.Find[corev1.Pod](ctx, r.api.Live, name)
}

// ofPod returns the requests of a pod that are not over. They are shared, and only read. Each is decoded once, since
// all requests of a pod look at all others.
func (r *Reconciler) ofPod(ctx context.Context, namespace, uid string) ([]*request, error) {
	raws, err := stored.List(ctx, r.api.Cached, gvk(), client.InNamespace(namespace), client.MatchingFields{byPod: uid})
	if err != nil {
		return nil, err
	}
	all := make([]*request, 0, len(raws))
	for _, raw := range raws {
		one := r.decoded.Decode(raw)
		if one == nil { // it is malformed in part
			if one, _, err = decode(raw); err != nil {
				return nil, fmt.Errorf("request %s: %w", raw.GetName(), err)
			}
		}
		all = append(all, one)
	}
	return all, nil
}
