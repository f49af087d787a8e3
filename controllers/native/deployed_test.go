//go:build simulated || nightly

package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// fleet is a Deployment that a user changes at random, and the rules of its rollouts. The mutex of the chaos guards it.
type fleet struct {
	*chaos

	name                 string
	image, env, restarts int
	replicas, least      int32
	paused, plain        bool
	// rolls means that the built-in controller may roll out, and calm since when it does not.
	rolls bool
	calm  time.Time
	// scaled is when the replicas last changed.
	scaled time.Time
	// epoch counts the templates.
	epoch int
	pods  map[types.UID]*corev1.Pod
}

// settling is how long the built-in controllers take to do what a change asks for, with a margin.
const settling = 3 * time.Second

func (f *fleet) template() corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": f.name}}}
	if f.restarts > 0 {
		t.Annotations = map[string]string{restartedAt: strconv.Itoa(f.restarts)}
	}
	t.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	t.Spec.Containers = []corev1.Container{{
		Name: "app", Image: fmt.Sprintf("example.com/app:%d", f.image),
		Env: []corev1.EnvVar{{Name: "A", Value: strconv.Itoa(f.env)}},
	}}
	return t
}

func (f *fleet) object() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.Namespace, Name: f.name, Annotations: map[string]string{adapter.RolloutKey: "{}"},
	}}
	d.Spec.Replicas, d.Spec.RevisionHistoryLimit, d.Spec.Template = &f.replicas, ptr.To(int32(3)), f.template()
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": f.name}}
	d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	one := intstr.FromInt32(1)
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &one, MaxSurge: &one}
	return d
}

// use changes the Deployment at random until the context ends.
func (f *fleet) use(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(300+r.IntN(2000))*time.Millisecond)
		switch n := r.IntN(22); {
		case n < 6:
			f.change(false, func() { f.image++ })
		case n < 8:
			f.change(false, func() { f.image = max(f.image-1, 0) })
		case n < 12: // taken back in the middle
			f.change(false, func() { f.image++ })
			pause(ctx, time.Duration(r.IntN(2000))*time.Millisecond)
			f.change(false, func() { f.image-- })
		case n < 14:
			f.scale(3 + r.Int32N(3))
		case n == 14:
			f.change(true, func() { f.env++ })
		case n == 15:
			f.change(true, func() { f.restarts++ })
		case n == 16: // a user's pause, and its end
			f.change(true, func() { f.paused = true })
			f.change(true, func() { f.image++ })
			pause(ctx, time.Second)
			f.change(true, func() { f.paused = false })
		case n == 17:
			f.change(true, func() { f.plain = true })
			pause(ctx, time.Second)
			f.change(true, func() { f.plain = false })
		case n == 18: // an autoscaler, in the middle of a rollout
			f.change(false, func() { f.image++ })
			for range 4 {
				pause(ctx, time.Duration(r.IntN(500))*time.Millisecond)
				f.scale(3 + r.Int32N(4))
			}
		case n == 19: // a node is lost, with all of its pods
			for range 2 {
				f.killOne(r, maps.Values(f.pods), func(*corev1.Pod) bool { return true })
			}
		default:
			f.killOne(r, maps.Values(f.pods), func(*corev1.Pod) bool { return true })
		}
		if r.IntN(3) == 0 {
			f.rest(ctx)
		}
	}
	f.change(true, func() { f.paused, f.plain = false, false })
}

// scale changes the replicas.
func (f *fleet) scale(replicas int32) {
	f.change(false, func() {
		f.least, f.replicas, f.scaled = min(f.least, f.replicas-1), replicas, time.Now()
		f.least = min(f.least, f.replicas)
	})
}

// change writes the Deployment after a change of what the user wants.
func (f *fleet) change(rolls bool, change func()) {
	f.mu.Lock()
	before := f.template()
	change()
	f.rolls = f.rolls || rolls
	changes := map[string]any{"replicas": f.replicas}
	if after := f.template(); fmt.Sprint(before) != fmt.Sprint(after) {
		f.epoch++
		changes["template"] = map[string]any{
			"metadata": map[string]any{"annotations": after.Annotations},
			"spec":     map[string]any{"containers": after.Spec.Containers},
		}
	}
	if rolls {
		changes["paused"] = f.paused
	}
	var asks any
	if !f.plain {
		asks = "{}"
	}
	f.mu.Unlock()
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{adapter.RolloutKey: asks}}, "spec": changes,
	})
	if err == nil {
		err = f.live.Patch(f.Context(), f.object(), client.RawPatch(types.StrategicMergePatchType, data))
	}
	if err != nil && f.Context().Err() == nil {
		f.Errorf("change %s: %v", f.name, err)
	}
}

// rest waits until nothing is left to do.
func (f *fleet) rest(ctx context.Context) {
	for range 40 {
		if f.done() == nil {
			f.mu.Lock()
			f.rolls, f.calm, f.least = false, time.Now().Add(time.Second), f.replicas
			f.mu.Unlock()
			return
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// done returns what is left to do.
func (f *fleet) done() error {
	d := &appsv1.Deployment{}
	if err := f.live.Get(f.Context(), client.ObjectKeyFromObject(f.object()), d); err != nil {
		return err
	}
	s, want := d.Status, *d.Spec.Replicas
	_, held := d.Annotations[adapter.HoldKey]
	if held || d.Spec.Paused || s.ObservedGeneration < d.Generation || s.Replicas != want || s.UpdatedReplicas != want ||
		s.AvailableReplicas != want {
		return fmt.Errorf("%s: paused %v, %v, %+v", f.name, d.Spec.Paused, d.Annotations, s)
	}
	n, sets, err := f.list(d)
	if err == nil && (n != int(want) || sets != 1) {
		err = fmt.Errorf("%s: %d pods of %d ReplicaSets run %s", f.name, n, sets, d.Spec.Template.Spec.Containers[0].Image)
	}
	return err
}

// list returns how many pods run the template, and how many ReplicaSets have pods.
func (f *fleet) list(d *appsv1.Deployment) (running, sets int, err error) {
	var list corev1.PodList
	if err := f.live.List(f.Context(), &list, client.InNamespace(f.Namespace),
		client.MatchingLabels{"app": f.name}); err != nil {
		return 0, 0, err
	}
	owners := map[types.UID]bool{}
	for k := range list.Items {
		if pod := &list.Items[k]; pod.DeletionTimestamp == nil {
			owners[metav1.GetControllerOf(pod).UID] = true
			if runs(pod, &d.Spec.Template) {
				running++
			}
		}
	}
	return running, len(owners), nil
}

// runs reports whether the containers of a pod run a template.
func runs(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	s := pod.Status.ContainerStatuses
	return pod.Spec.Containers[0].Image == t.Spec.Containers[0].Image && sameEnv(pod, t) && len(s) == 1 &&
		s[0].Image == t.Spec.Containers[0].Image && s[0].State.Running != nil
}

// observe takes an event of a pod: it is created in the one ReplicaSet and deleted by no controller, unless a change is
// not possible in place, and its containers change once for a template.
func (f *fleet) observe(kind watch.EventType, pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps++
	before, at := f.pods[pod.UID], f.seen[pod.UID]
	if at == nil {
		at = &sighting{epoch: f.epoch}
		f.seen[pod.UID] = at
	}
	if kind == watch.Deleted {
		delete(f.pods, pod.UID)
		return
	}
	f.pods[pod.UID] = pod
	calm := !f.rolls && time.Since(f.calm) > 0
	switch {
	case before == nil && calm && pod.CreationTimestamp.After(f.calm):
		for _, other := range f.pods {
			if other.DeletionTimestamp == nil && metav1.GetControllerOf(other).UID != metav1.GetControllerOf(pod).UID {
				f.breaks("%s is of another ReplicaSet than %s", pod.Name, other.Name)
			}
		}
	case pod.DeletionTimestamp != nil && !at.terminating:
		at.terminating = true
		if calm && !f.killed[pod.UID] && time.Since(f.scaled) > settling {
			f.breaks("%s was deleted, and not killed", pod.Name)
		}
	}
	if before == nil {
		return
	}
	if before.Spec.Containers[0].Image != pod.Spec.Containers[0].Image {
		f.deployed++
		if at.images++; at.images > f.epoch-at.epoch+1 {
			f.breaks("%s: image %d in %d templates", pod.Name, at.images, f.epoch-at.epoch+1)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if int(status.RestartCount) > at.images {
			f.breaks("%s: %d restarts, and %d images", pod.Name, status.RestartCount, at.images)
		}
	}
}
