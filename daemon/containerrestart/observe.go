package containerrestart

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	s := &snapshot{name: name, now: r.api.Now()}
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
	cached, err := stored.List(ctx, r.api.Cached, gvk(), client.InNamespace(name.Namespace),
		client.MatchingFields{byPod: name.Name})
	if err != nil {
		return nil, err
	}
	written, _, err := r.writes.Overlay(ctx, name, cached)
	if err != nil {
		return nil, err
	}
	known := r.workers.Known()
	var all []*request
	for _, raw := range written {
		if raw.GetLabels()[v1beta1.ContainerRecreateRequestNodeNameKey] != r.node ||
			raw.GetLabels()[v1beta1.ContainerRecreateRequestActiveKey] != "true" && !attempted(known, raw.GetUID()) {
			continue
		}
		if one := stored.Whole[request](raw); one != nil {
			all = append(all, one)
			continue
		}
		// It is for the manager to end it. It must not keep others from running.
		log.FromContext(ctx).Info("Request is left out: it is not what its kind is", "request", raw.GetName())
	}
	return all, nil
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
		err := r.api.Live.Get(ctx, types.NamespacedName{Namespace: a.pod.Namespace, Name: a.request}, raw)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read request %s: %w", a.request, err)
		}
		if one := stored.Whole[request](raw); err == nil && one != nil && one.UID == a.uid {
			s.requests = append(s.requests, one)
			continue
		}
		r.workers.Forget(a)
	}
	return nil
}

// podNamed is a pod of this node; nil where there is none.
func (r *Reconciler) podNamed(ctx context.Context, name types.NamespacedName) (*corev1.Pod, error) {
	pod, err := stored.Find[corev1.Pod](ctx, r.api.Client, name)
	if err != nil || pod == nil || pod.Spec.NodeName != r.node {
		return nil, err
	}
	return pod, nil
}

// podless says of a request that its pod is gone. The manager ends it; nothing is left that could be stopped for it.
func (r *Reconciler) podless(s *snapshot, one *request) bool {
	return !r.options.NoPods && (s.pod == nil || s.pod.UID != podUID(one))
}
