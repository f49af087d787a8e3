package cloneset_test

import (
	"fmt"
	"math"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// rules are what must never happen. They are checked after every single write.
type rules struct {
	*world
	// broken are the rules that were broken.
	broken []string
	// live are the pods as the server holds them, and pass those that the reconciler decides upon, at a version; nil where
	// another component writes.
	live, pass map[string]*corev1.Pod
	version    int64
	// spec, its limits and update, the name of the update revision, are those of the pass; moving means that pods go from
	// one revision to another.
	spec   v1beta1.CloneSetSpec
	limits scale.Limits
	update string
	moving bool
	// written are the versions of pods as the reconciler has written them.
	written map[types.UID]int64
	// images counts how often the image of a pod was changed, moves how often a pod went to another revision.
	images, moves map[types.UID]int32
	// chosen are the pods that the user has chosen for deletion.
	chosen map[types.UID]bool
	// created counts pods.
	created int
}

func newRules(w *world) *rules {
	return &rules{
		world: w, live: map[string]*corev1.Pod{}, written: map[types.UID]int64{}, images: map[types.UID]int32{},
		moves: map[types.UID]int32{}, chosen: map[types.UID]bool{},
	}
}

func (r *rules) breaks(format string, args ...any) {
	r.broken = append(r.broken, fmt.Sprintf(format, args...))
}

// begin begins a pass upon what the cache shows.
func (r *rules) begin() {
	var set v1beta1.CloneSet
	var pods corev1.PodList
	var revisions appsv1.ControllerRevisionList
	for _, err := range []error{
		r.cache.Get(r.Context(), client.ObjectKeyFromObject(r.set), &set), r.cache.List(r.Context(), &pods),
		r.Server.List(r.Context(), &revisions),
	} {
		if err != nil {
			r.Fatal(err)
		}
	}
	r.pass, r.version = map[string]*corev1.Pod{}, r.cache.View.Version()
	for i := range pods.Items {
		r.pass[pods.Items[i].Name] = &pods.Items[i]
	}
	data, err := revision.Encode(&set.Spec.Template)
	if err != nil {
		r.Fatal(err)
	}
	in := revision.Input{Owner: set.Name, Data: data, Current: set.Status.CurrentRevision}
	in.Have = revision.ControlledBy(&set, revisions.Items)
	r.spec, r.limits, r.update = set.Spec, limitsOf(&set), revision.Resolve(in).Name
	r.moving = in.Current != "" && in.Current != r.update
}

// end ends a pass.
func (r *rules) end() { r.pass = nil }

// change of a pod; before or after is nil where it does not exist.
type change struct{ before, after *corev1.Pod }

// changed checks a change of a pod.
func (r *rules) changed(before, after client.Object) {
	c := change{}
	c.before, _ = before.(*corev1.Pod)
	c.after, _ = after.(*corev1.Pod)
	pod := c.after
	switch {
	case c.before == nil && c.after == nil:
		return
	case c.before == nil:
		r.created++
	case c.after == nil:
		if pod = c.before; pod.DeletionTimestamp == nil {
			r.breaks("%s is lost", pod.Name)
		}
	default:
		if revisionOf(c.before) != revisionOf(c.after) {
			r.moves[pod.UID]++
		}
		if restarts(c) {
			r.images[pod.UID]++
		}
		if r.pass == nil && isChosen(c.after) && !isChosen(c.before) {
			r.chosen[pod.UID] = true
		}
	}
	if r.live[pod.Name] = c.after; c.after == nil {
		delete(r.live, pod.Name)
	}
	if r.pass != nil {
		r.keepsAvailable(c)
		r.keepsSurge(c)
		r.keepsPartition(c)
		r.keepsTraffic(c)
		r.keepsPod(c)
		r.written[pod.UID] = math.MaxInt64 // a pod that is gone
		if c.after != nil {
			r.written[pod.UID], _ = strconv.ParseInt(c.after.ResourceVersion, 10, 64)
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.RestartCount > r.images[pod.UID] || r.images[pod.UID] > r.moves[pod.UID] {
			const text = "%s restarted %d times, with %d images in %d updates"
			r.breaks(text, pod.Name, s.RestartCount, r.images[pod.UID], r.moves[pod.UID])
		}
	}
}

// restarts reports whether a container has to restart for a change.
func restarts(c change) bool {
	return c.before.Spec.Containers[0].Image != c.after.Spec.Containers[0].Image
}

// keepsAvailable: no write takes away a pod that is available, as far as the reconciler can see, beyond
// maxUnavailable.
func (r *rules) keepsAvailable(c change) {
	if c.before == nil || !r.isUp(c.before) || c.after != nil && r.isUp(c.after) {
		return
	}
	if was := r.pass[c.before.Name]; was == nil || was.UID != c.before.UID || !r.isUp(was) {
		return
	}
	least := r.limits.Replicas - r.limits.MaxUnavailable
	if n := count(r.live, r.isUp); n+r.unseen(r.isUp) < least {
		r.breaks("%s leaves %d available, and %d are the least", c.before.Name, n, least)
	}
}

// keepsSurge: no pod is created beyond the surge.
func (r *rules) keepsSurge(c change) {
	most := r.limits.Replicas + r.limits.MaxSurge
	if n := count(r.live, isActive); c.before == nil && n > most {
		r.breaks("%s is one of %d, and %d are the most", c.after.Name, n, most)
	}
}

// keepsPartition: no pod is updated beyond the partition, in either direction.
func (r *rules) keepsPartition(c change) {
	if c.after == nil || !r.moving || c.before != nil && revisionOf(c.before) == revisionOf(c.after) {
		return
	}
	updated := func(pod *corev1.Pod) bool { return isActive(pod) && revisionOf(pod) == r.update }
	old := func(pod *corev1.Pod) bool { return isActive(pod) && revisionOf(pod) != r.update }
	l := r.limits
	// A plan moves pods back also where it could as well create the old ones that are missing.
	missing := count(r.live, isActive) < l.Replicas
	switch tooFew := count(r.live, old)+r.unseen(old) < l.Partition; {
	case c.before == nil: // those at the old revision may be created at the same time
		if most := l.Replicas + l.MaxSurge - l.Partition; tooFew && updated(c.after) && count(r.live, updated) > most {
			r.breaks("%s is one of more than %d updated pods", c.after.Name, most)
		}
	case updated(c.after) && tooFew:
		r.breaks("%s leaves fewer than %d old pods", c.after.Name, l.Partition)
	case old(c.after) && !missing && count(r.live, updated)+r.unseen(updated) < l.Replicas-l.Partition:
		r.breaks("%s goes back and leaves fewer than %d updated pods", c.after.Name, l.Replicas-l.Partition)
	}
}

// keepsTraffic: no container changes while its pod is in traffic, and a pod whose containers are ready goes back into
// traffic only when they run what its spec asks for.
func (r *rules) keepsTraffic(c change) {
	if c.before == nil || c.after == nil {
		return
	}
	if restarts(c) && conditionOf(c.after, corev1.PodReady) == corev1.ConditionTrue {
		r.breaks("%s changes in traffic", c.after.Name)
	}
	opens := conditionOf(c.before, corev1.ContainersReady) == corev1.ConditionTrue &&
		conditionOf(c.before, kruise.InPlaceUpdateReady) == corev1.ConditionFalse &&
		conditionOf(c.after, kruise.InPlaceUpdateReady) == corev1.ConditionTrue
	if runs := c.after.Status.ContainerStatuses; opens && runs[0].Image != c.after.Spec.Containers[0].Image {
		r.breaks("%s goes back into traffic although it runs %s", c.after.Name, runs[0].Image)
	}
}

// keepsPod: a pod is not recreated for a change that is possible in place, and none is deleted without a reason: the
// user has chosen it, the template has changed in what only a new pod takes, or there are more pods than replicas.
func (r *rules) keepsPod(c change) {
	if c.before == nil || c.after == nil || r.chosen[c.after.UID] {
		return
	}
	marked := isChosen(c.after) && !isChosen(c.before)
	deleted := isActive(c.before) && !isActive(c.after)
	env := func(containers []corev1.Container) []corev1.EnvVar { return containers[0].Env }
	spec := &r.spec
	policy := spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy
	fits := policy == v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType &&
		apiequality.Semantic.DeepEqual(env(c.before.Spec.Containers), env(spec.Template.Spec.Containers))
	switch {
	case marked && fits && revisionOf(c.before) != r.update:
		r.breaks("%s is recreated although it can be updated in place", c.after.Name)
	case deleted && !isChosen(c.before) && count(r.live, isActive)+r.unseen(isActive) < r.limits.Replicas:
		r.breaks("%s is deleted without a reason", c.after.Name)
	}
}

// unavailable is why a pod is not available; empty for a pod that is.
func (r *rules) unavailable(pod *corev1.Pod) string {
	switch state := lifecycle.StateOf(pod); {
	case !isActive(pod):
		return "it is deleted"
	case pod.Status.Phase != corev1.PodRunning:
		return "it does not run"
	case state != normal:
		return "its state is " + string(state)
	case conditionOf(pod, kruise.InPlaceUpdateReady) != corev1.ConditionTrue:
		return "its gate is closed"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			long := time.Duration(r.set.Spec.MinReadySeconds) * time.Second
			if ready := r.Now().Sub(c.LastTransitionTime.Time); ready < long {
				return fmt.Sprintf("it is ready for %s only", ready)
			}
			return ""
		}
	}
	return "it is not ready"
}

func (r *rules) isUp(pod *corev1.Pod) bool { return r.unavailable(pod) == "" }

// unseen is how many pods something was true of when the reconciler looked, and is not any more, by no write of its
// own.
func (r *rules) unseen(is func(*corev1.Pod) bool) int32 {
	return count(r.pass, func(pod *corev1.Pod) bool {
		now := r.live[pod.Name]
		gone := now == nil || now.UID != pod.UID
		return is(pod) && r.written[pod.UID] <= r.version && (gone || !is(now))
	})
}

// count is how many pods something is true of.
func count(pods map[string]*corev1.Pod, is func(*corev1.Pod) bool) (n int32) {
	for _, pod := range pods {
		if is(pod) {
			n++
		}
	}
	return n
}

func isActive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil }

func isChosen(pod *corev1.Pod) bool { _, is := pod.Labels[kruise.SpecifiedDeleteKey]; return is }

func revisionOf(pod *corev1.Pod) string { return pod.Labels[kruise.PodRevisionLabelKey] }

// limitsOf are the bounds of a set as numbers.
func limitsOf(set *v1beta1.CloneSet) scale.Limits {
	rolling, l := set.Spec.UpdateStrategy.RollingUpdate, scale.Limits{Replicas: *set.Spec.Replicas}
	l.Partition, _ = scale.Partition(rolling.Partition, l.Replicas)
	rounding := scale.RoundUp
	if !rolling.Paused {
		if l.MaxSurge, _ = scale.AmountOr(rolling.MaxSurge, 0, l.Replicas, scale.RoundUp); l.MaxSurge > 0 {
			rounding = scale.RoundDown
		}
	}
	l.MaxUnavailable, _ = scale.AmountOr(rolling.MaxUnavailable, 0, l.Replicas, rounding)
	return l
}
