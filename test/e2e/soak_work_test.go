//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// turnTime is how long a turn may take, with a leader that is killed in the middle of it.
const turnTime = 4 * time.Minute

// worker changes objects of a kind in turns. A turn ends when the cluster shows its outcome.
type worker struct {
	kind  string
	turns []func(context.Context) error
}

// repeat does the turns of a worker until the time is over. A turn that fails does not end the others.
func (s *soak) repeat(ctx context.Context, w worker) {
	s.report.count("kinds", w.kind)
	for n := 0; pause(ctx, s.between(2*time.Second, 15*time.Second)); n++ {
		begin := time.Now()
		// The turn that has begun ends.
		turn, stop := context.WithTimeout(context.WithoutCancel(ctx), turnTime)
		err := w.turns[n%len(w.turns)](turn)
		stop()
		if err != nil {
			s.report.fail("%s, turn %d, begun at %s: %v", w.kind, n, begin.Format(time.TimeOnly), err)
			continue
		}
		s.report.count("turns", w.kind)
		s.report.longest("turn of "+w.kind, time.Since(begin))
	}
}

// try repeats a request of a user that fails, as it may while a replica is killed, and counts the failures.
func (s *soak) try(ctx context.Context, request func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		if last = request(ctx); last != nil && !apierrors.IsConflict(last) {
			s.report.count("requests repeated", reason(last))
		}
		return last == nil, nil
	})
	return errors.Join(err, last)
}

// reason classifies the error of a request.
func reason(err error) string {
	text := err.Error()
	for _, sign := range []string{
		"connection refused", "context deadline exceeded", "EOF", "no endpoints available", "connection reset",
		"no route to host", "x509",
	} {
		if strings.Contains(text, sign) {
			return sign
		}
	}
	if len(text) > 160 {
		text = text[:160]
	}
	return text
}

// until polls a condition as long as the turn may take, and returns why it does not hold.
func until(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if now := check(ctx); ctx.Err() == nil || now == nil {
			last = now
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w; last: %w", err, last)
	}
	return nil
}

func kindOf(group, kind string) schema.GroupVersionKind {
	version := "v1beta1"
	switch {
	case group == "apps":
		version = "v1"
	case kind == "PodProbeMarker" || kind == "EphemeralJob":
		version = "v1alpha1"
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

const ours = "apps.kruise.io"

var (
	cloneSet        = kindOf(ours, "CloneSet")
	advancedCronJob = kindOf(ours, "AdvancedCronJob")
	deployment      = kindOf("apps", "Deployment")
)

func (s *soak) object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(s.namespace)
	if kind.Kind == "ResourceDistribution" {
		u.SetNamespace("")
	}
	u.SetName(name)
	return u
}

// patch merges a patch into an object, or applies a JSON patch where the text is a list.
func (s *soak) patch(ctx context.Context, kind schema.GroupVersionKind, name, patch string) error {
	format := types.MergePatchType
	if strings.HasPrefix(patch, "[") {
		format = types.JSONPatchType
	}
	return s.try(ctx, func(ctx context.Context) error {
		return s.Client.Patch(ctx, s.object(kind, name), client.RawPatch(format, []byte(patch)))
	})
}

// settles waits until the status of an object is that of its generation, with these numbers.
func (s *soak) settles(ctx context.Context, kind schema.GroupVersionKind, name string, want map[string]int64) error {
	return s.shows(ctx, kind, name, func(u *unstructured.Unstructured) error {
		if seen, found, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); found &&
			seen < u.GetGeneration() {
			return fmt.Errorf("generation %d of %d", seen, u.GetGeneration())
		}
		for _, field := range slices.Sorted(maps.Keys(want)) {
			if n, _, _ := unstructured.NestedInt64(u.Object, "status", field); n != want[field] {
				return fmt.Errorf("%s is %d, want %d", field, n, want[field])
			}
		}
		return nil
	})
}

// shows waits until an object passes a check.
func (s *soak) shows(
	ctx context.Context, kind schema.GroupVersionKind, name string, check func(*unstructured.Unstructured) error,
) error {
	return until(ctx, func(ctx context.Context) error {
		u := s.object(kind, name)
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if err := check(u); err != nil {
			return fmt.Errorf("%s %s: %w, status %v", kind.Kind, name, err, u.Object["status"])
		}
		return nil
	})
}

// gone deletes an object, and waits until the object is gone.
func (s *soak) gone(ctx context.Context, kind schema.GroupVersionKind, name string) error {
	if err := s.try(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(s.Client.Delete(ctx, s.object(kind, name), client.PropagationPolicy("Background")))
	}); err != nil {
		return err
	}
	return until(ctx, func(ctx context.Context) error {
		u := s.object(kind, name)
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %s is still there: %w", kind.Kind, name, err)
		}
		return nil
	})
}

// podsOf are the pods with a label app that are not being deleted, by name.
func (s *soak) podsOf(ctx context.Context, app string) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	if err := s.Client.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{"app": app}); err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods[list.Items[i].Name] = &list.Items[i]
		}
	}
	return pods, nil
}

// kept reports pods that were replaced since then.
func (s *soak) kept(ctx context.Context, app string, before map[string]*corev1.Pod) error {
	after, err := s.podsOf(ctx, app)
	if err != nil {
		return err
	}
	for name, pod := range before {
		if now := after[name]; now == nil || now.UID != pod.UID {
			return fmt.Errorf("pod %s was recreated by an update in place", name)
		}
	}
	return nil
}

// soakImages is after how many updates an image is back: kubelets wait longer and longer before they start a container
// again that has ended shortly before, and forget this after ten minutes.
const soakImages = 60

// next is the image after this one.
func next(image string) string {
	n := 0
	_, _ = fmt.Sscanf(image, "nginx:soak-%d", &n)
	return fmt.Sprintf("nginx:soak-%d", (n+1)%soakImages)
}

// flips gives the container of a template, at a path, its next image, in place, and waits until the status has these
// numbers.
func (s *soak) flips(kind schema.GroupVersionKind, name string, path []string, app string, want map[string]int64) func(
	context.Context,
) error {
	return func(ctx context.Context) error {
		before, err := s.podsOf(ctx, app)
		if err != nil {
			return err
		}
		if err := s.flip(ctx, kind, name, path); err != nil {
			return err
		}
		if err := s.settles(ctx, kind, name, want); err != nil {
			return err
		}
		return s.kept(ctx, app, before)
	}
}

// flip gives the first container at a path the next image.
func (s *soak) flip(ctx context.Context, kind schema.GroupVersionKind, name string, path []string) error {
	u := s.object(kind, name)
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return err
	}
	containers, _, _ := unstructured.NestedSlice(u.Object, append(slices.Clone(path), "containers")...)
	if len(containers) == 0 {
		return fmt.Errorf("%s %s has no containers at %v", kind.Kind, name, path)
	}
	first, _ := containers[0].(map[string]any)
	image, _ := first["image"].(string)
	patch := fmt.Sprintf(`[{"op":"replace","path":"/%s/containers/0/image","value":%q}]`,
		strings.Join(path, "/"), next(image))
	return s.patch(ctx, kind, name, patch)
}

// scales gives an object other replicas.
func (s *soak) scales(kind schema.GroupVersionKind, name string, replicas ...int64) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, n := range replicas {
			if err := s.patch(ctx, kind, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)); err != nil {
				return err
			}
			if err := s.settles(ctx, kind, name, map[string]int64{"replicas": n, "readyReplicas": n}); err != nil {
				return err
			}
		}
		return nil
	}
}
