package containerrestart

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
	"github.com/kruisekit/kruisekit/internal/stored"
)

type request = v1beta1.ContainerRecreateRequest

// snapshot is all that one pass looks at, but for the runtime. Objects in it may be the cache's and are only read.
type snapshot struct {
	name types.NamespacedName
	// pod of that name; nil where there is none, or none is watched.
	pod *corev1.Pod
	// requests that are active, and those for which a container is being stopped or was: of pods of that name, of which
	// there may have been several.
	requests []*request
	now      time.Time
}

// over says whether nothing more begins for a request.
func over(r *request) bool {
	return r.DeletionTimestamp != nil || r.Status.CompletionTime != nil ||
		r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
}

// podUID is the UID of a request's pod.
func podUID(r *request) types.UID {
	return types.UID(r.Labels[v1beta1.ContainerRecreateRequestPodUIDKey])
}

// observe makes the snapshot.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	s := &snapshot{name: name, now: r.options.Now()}
	var err error
	if s.requests, err = r.ofPod(ctx, name); err != nil {
		return nil, err
	}
	if err := r.recall(ctx, s); err != nil {
		return nil, err
	}
	if len(s.requests) > 0 && !r.options.NoPods {
		s.pod, err = r.podNamed(ctx, name)
	}
	return s, err
}

// ofPod returns the requests in the cache for pods of a name, as the last writes left them.
func (r *Reconciler) ofPod(ctx context.Context, name types.NamespacedName) ([]*request, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk().GroupVersion().WithKind(kind + "List"))
	err := r.cached.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{byPod: name.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("read requests of pod %s: %w", name, err)
	}
	cached := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		cached = append(cached, &list.Items[i])
	}
	written, _, err := r.writes.Overlay(ctx, name, cached)
	if err != nil {
		return nil, err
	}
	known := r.workers.Known()
	fresh := map[types.UID]*request{}
	var all []*request
	for _, raw := range written {
		if raw.GetLabels()[v1beta1.ContainerRecreateRequestNodeNameKey] != r.node {
			continue
		}
		one := r.decoded.decode(name, raw)
		if one == nil {
			// It is for the manager to end it. It must not keep others from running.
			log.FromContext(ctx).Info("Request is left out: it is not what its kind is", "request", raw.GetName())
			continue
		}
		if one.Labels[v1beta1.ContainerRecreateRequestActiveKey] == "true" || attempted(known, one.UID) {
			all = append(all, one)
			fresh[one.UID] = one
		}
	}
	r.decoded.put(name, fresh)
	return all, nil
}

// decoded are the requests of each pod as they were decoded in its last pass: a pod may have many, of which few have
// changed.
type decoded struct {
	mu    sync.Mutex
	known map[types.NamespacedName]map[types.UID]*request
}

// decode returns a request, which is shared and only read; nil where it is malformed.
func (d *decoded) decode(pod types.NamespacedName, raw *unstructured.Unstructured) *request {
	d.mu.Lock()
	known := d.known[pod][raw.GetUID()]
	d.mu.Unlock()
	if known != nil && known.ResourceVersion == raw.GetResourceVersion() {
		return known
	}
	return stored.Whole[request](raw)
}

func (d *decoded) put(pod types.NamespacedName, all map[types.UID]*request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(all) == 0 {
		delete(d.known, pod)
		return
	}
	if d.known == nil {
		d.known = map[types.NamespacedName]map[types.UID]*request{}
	}
	d.known[pod] = all
}

func attempted(known map[attempt]stopping.Outcome, uid types.UID) bool {
	for a := range known {
		if a.uid == uid {
			return true
		}
	}
	return false
}

// recall adds the requests for which containers are being stopped and that the cache has lost: because they have ended,
// where it holds active ones alone, or because they are gone. In the latter case the stops are cancelled.
func (r *Reconciler) recall(ctx context.Context, s *snapshot) error {
	for a := range r.workers.Known() {
		if a.pod != s.name || slices.ContainsFunc(s.requests, func(one *request) bool { return one.UID == a.uid }) {
			continue
		}
		raw := stored.Untyped(gvk())
		err := r.live().Get(ctx, types.NamespacedName{Namespace: a.pod.Namespace, Name: a.request}, raw)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read request %s: %w", a.request, err)
		}
		if err == nil && raw.GetUID() == a.uid {
			one, malformed, err := stored.Decode[request](raw)
			if err == nil && malformed == nil {
				s.requests = append(s.requests, one)
				continue
			}
		}
		r.workers.Forget(a)
	}
	return nil
}

// podNamed is a pod of this node; nil where there is none.
func (r *Reconciler) podNamed(ctx context.Context, name types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, name, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	case pod.Spec.NodeName != r.node:
		return nil, nil
	}
	return pod, nil
}

// podless says of a request that its pod is gone. The manager ends it; nothing is left that could be stopped for it.
func (r *Reconciler) podless(s *snapshot, one *request) bool {
	return !r.options.NoPods && (s.pod == nil || s.pod.UID != podUID(one))
}

// keep has the pod in the list of those to be looked at when something happens in a runtime.
func (r *Reconciler) keep(s *snapshot) {
	for _, one := range s.requests {
		if !over(one) && !r.podless(s, one) {
			r.waiting.Put(s.name, podUID(one))
			return
		}
	}
	r.waiting.Drop(s.name)
}
