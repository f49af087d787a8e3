package cloneset_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// rules are what must never happen. They are checked after every single write.
type rules struct {
	*world
	// broken are the rules that were broken.
	broken []string
	// pass is what the reconciler decides upon; nil where another component writes.
	pass *view
	// limits and update, the name of the update revision, are those of the pass; moving means that pods go from one
	// revision to another.
	limits scale.Limits
	update string
	moving bool
	// written are the versions of pods as the reconciler has written them.
	written map[types.UID]int64
	// images counts how often the image of a container was changed, moves how often a pod went to another revision.
	images, moves map[types.UID]int32
	// crashes counts restarts without an update.
	crashes map[types.UID]int32
	// updates are the writes of the updates in place that are under way, and counted those of complete ones.
	updates map[types.UID]int
	counted []int
	// chosen are the pods that the user has chosen for deletion.
	chosen map[types.UID]bool
	// created counts pods.
	created int
}

func newRules(w *world) *rules {
	counts := func() map[types.UID]int32 { return map[types.UID]int32{} }
	return &rules{
		world: w, written: map[types.UID]int64{}, images: counts(), moves: counts(), crashes: counts(),
		updates: map[types.UID]int{}, chosen: map[types.UID]bool{},
	}
}

func (r *rules) breaks(format string, args ...any) {
	r.broken = append(r.broken, fmt.Sprintf(format, args...))
}

// reads begins a pass upon a view, or ends the pass.
func (r *rules) reads(v *view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pass = v; v == nil {
		return
	}
	data, err := revision.Encode(&v.set.Spec.Template)
	if err != nil {
		r.Fatal(err)
	}
	in := revision.Input{Owner: v.set.Name, Data: data, Current: v.set.Status.CurrentRevision}
	for _, rev := range r.live.revisions {
		in.Have = append(in.Have, rev)
	}
	r.limits, r.update = limitsOf(v.set), revision.Resolve(in).Name
	r.moving = in.Current != "" && in.Current != r.update
}

// failed is called for a pass that returns an error. Only a cache that lags and a server that fails are reasons.
func (r *rules) failed(err error) {
	r.tale.say("controller", "looks again: "+err.Error())
	if r.lag == 0 && r.process.faults.Of == 0 {
		r.fail("a pass fails although it has read what there is: %v", err)
	}
	if apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "a patch of") {
		r.fail("no server stores the write: %v", err)
	}
}

// judge checks a change of a pod.
func (r *rules) judge(c change) {
	pod := c.pod()
	switch {
	case c.before == nil:
		r.created++
	case c.after != nil:
		if revisionOf(c.before) != revisionOf(c.after) {
			r.moves[pod.UID]++
		}
		if restarts(c) {
			r.images[pod.UID]++
		}
		if r.pass == nil && isChosen(c.after) && !isChosen(c.before) {
			r.chosen[pod.UID] = true
		}
	case c.before.DeletionTimestamp == nil:
		r.breaks("%s is lost", pod.Name)
	}
	if r.pass != nil {
		r.keepsAvailable(c)
		r.keepsSurge(c)
		r.keepsPartition(c)
		r.keepsTraffic(c)
		r.keepsPromise(c)
		r.keepsPod(c)
		r.written[pod.UID] = math.MaxInt64 // a pod that is gone
		if c.after != nil {
			r.written[pod.UID], _ = strconv.ParseInt(c.after.ResourceVersion, 10, 64)
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if most := r.images[pod.UID] + r.crashes[pod.UID]; s.RestartCount > most {
			r.breaks("container %s of %s restarted %d times, %d at most", s.Name, pod.Name, s.RestartCount, most)
		}
	}
	if r.images[pod.UID] > r.moves[pod.UID] {
		r.breaks("%s got %d images in %d updates", pod.Name, r.images[pod.UID], r.moves[pod.UID])
	}
}

// count counts a write of the reconciler for the update in place of its pod.
func (r *rules) count(before, after *corev1.Pod) {
	if after == nil || before.UID != after.UID {
		return
	}
	mark := conditionOf(after, kruise.InPlaceUpdateReady)
	if mark == corev1.ConditionFalse && conditionOf(before, kruise.InPlaceUpdateReady) != mark {
		r.updates[after.UID] = 0
	}
	if _, ok := r.updates[after.UID]; !ok {
		return
	}
	r.updates[after.UID]++
	if mark == corev1.ConditionTrue && stateOf(&after.ObjectMeta) == string(normal) {
		r.counted = append(r.counted, r.updates[after.UID])
		delete(r.updates, after.UID)
	}
}

// restarts reports whether a container has to restart for a change.
func restarts(c change) bool {
	for i := range c.after.Spec.Containers {
		before, after := &c.before.Spec.Containers[i], &c.after.Spec.Containers[i]
		if before.Image != after.Image {
			return true
		}
		was, err := inplace.EnvHash(before, c.before.Labels, c.before.Annotations)
		is, err2 := inplace.EnvHash(after, c.after.Labels, c.after.Annotations)
		if err != nil || err2 != nil || was != is {
			return true
		}
	}
	return false
}

// keepsAvailable: no write takes away a pod that is available, as far as the reconciler can see, beyond
// maxUnavailable.
func (r *rules) keepsAvailable(c change) {
	if c.before == nil || !r.isUp(c.before) || c.after != nil && r.isUp(c.after) {
		return
	}
	if was := r.pass.pods[c.before.Name]; was == nil || was.UID != c.before.UID || !r.isUp(was) {
		return
	}
	least := r.limits.Replicas - r.limits.MaxUnavailable
	if n := r.live.count(r.isUp); n+r.unseen(r.isUp) < least {
		r.breaks("%s leaves %d available, and %d are the least", c.before.Name, n, least)
	}
}

// keepsSurge: no pod is created beyond the surge.
func (r *rules) keepsSurge(c change) {
	most := r.limits.Replicas + r.limits.MaxSurge
	if n := r.live.count(isActive); c.before == nil && n > most {
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
	missing := r.live.count(isActive) < l.Replicas
	switch tooFew := r.live.count(old)+r.unseen(old) < l.Partition; {
	case c.before == nil: // those at the old revision may be created at the same time
		if most := l.Replicas + l.MaxSurge - l.Partition; tooFew && updated(c.after) && r.live.count(updated) > most {
			r.breaks("%s is one of more than %d updated pods", c.after.Name, most)
		}
	case updated(c.after) && tooFew:
		r.breaks("%s leaves fewer than %d old pods", c.after.Name, l.Partition)
	case old(c.after) && !missing && r.live.count(updated)+r.unseen(updated) < l.Replicas-l.Partition:
		r.breaks("%s goes back and leaves fewer than %d updated pods", c.after.Name, l.Replicas-l.Partition)
	}
}

// keepsTraffic: no container changes while its pod is in traffic, where a gate can take the pod out.
func (r *rules) keepsTraffic(c change) {
	if c.before != nil && c.after != nil && restarts(c) {
		r.restarts(c.after)
	}
}

// restarts is called before a node restarts a container for its new image.
func (r *rules) restarts(pod *corev1.Pod) {
	if hasGate(pod, kruise.InPlaceUpdateReady) && conditionOf(pod, corev1.PodReady) == corev1.ConditionTrue {
		r.breaks("%s restarts in traffic", pod.Name)
	}
}

// keepsPromise: a pod whose containers are ready goes back into traffic only when they run what its spec asks for.
func (r *rules) keepsPromise(c change) {
	if c.before == nil || conditionOf(c.before, corev1.ContainersReady) != corev1.ConditionTrue ||
		conditionOf(c.before, kruise.InPlaceUpdateReady) != corev1.ConditionFalse ||
		conditionOf(c.pod(), kruise.InPlaceUpdateReady) != corev1.ConditionTrue {
		return
	}
	for _, container := range c.pod().Spec.Containers {
		if runs := r.nodes.runs[c.pod().UID][container.Name]; runs != nil && runs.image != container.Image {
			r.breaks("%s goes back into traffic although it runs %s", c.pod().Name, runs.image)
		}
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
	spec := &r.pass.set.Spec
	policy := spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy
	fits := policy == v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType &&
		apiequality.Semantic.DeepEqual(env(c.before.Spec.Containers), env(spec.Template.Spec.Containers))
	switch {
	case marked && fits && revisionOf(c.before) != r.update:
		r.breaks("%s is recreated although it can be updated in place", c.after.Name)
	case deleted && !isChosen(c.before) && r.live.count(isActive)+r.unseen(isActive) < r.limits.Replicas:
		r.breaks("%s is deleted without a reason", c.after.Name)
	}
}

// unavailable is why a pod is not available; empty for a pod that is.
func (r *rules) unavailable(pod *corev1.Pod) string {
	switch state := stateOf(&pod.ObjectMeta); {
	case !isActive(pod):
		return "it is deleted"
	case pod.Status.Phase != corev1.PodRunning:
		return "it does not run"
	case state != "" && state != string(normal):
		return "its state is " + state
	case conditionOf(pod, kruise.InPlaceUpdateReady) != corev1.ConditionTrue:
		return "its gate is closed"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			long := time.Duration(r.live.set.Spec.MinReadySeconds) * time.Second
			if ready := r.now().Sub(c.LastTransitionTime.Time); ready < long {
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
	return r.pass.count(func(pod *corev1.Pod) bool {
		now := r.live.pods[pod.Name]
		gone := now == nil || now.UID != pod.UID
		return is(pod) && r.written[pod.UID] <= r.pass.version && (gone || !is(now))
	})
}

// count is how many pods something is true of.
func (v *view) count(is func(*corev1.Pod) bool) (n int32) {
	for _, pod := range v.pods {
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
