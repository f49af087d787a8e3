package workload_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// siteRules are what must never happen to a site. They are checked after every single write.
type siteRules struct {
	*site
	live map[string]*corev1.Pod
	// pass are the pods that a pass decides upon, as they were; nil where another component writes.
	pass          map[string]*corev1.Pod
	version       int64
	limits        scale.Limits
	update        string
	moving        bool
	images, moves map[types.UID]int32
	written       map[types.UID]int64
	broken        []string
	plan          *workload.Pass
	going         map[string]bool
	// refused means that a creation of the pass has failed, and disrupts what the pass says of itself.
	refused, disrupts bool
	updates           map[types.UID]int
	counted           []int
}

func newSiteRules(s *site) *siteRules {
	return &siteRules{
		site: s, live: map[string]*corev1.Pod{}, images: map[types.UID]int32{}, moves: map[types.UID]int32{},
		written: map[types.UID]int64{}, updates: map[types.UID]int{},
	}
}

func (r *siteRules) breaks(format string, args ...any) {
	r.broken = append(r.broken, fmt.Sprintf(format, args...))
}

// begin begins a pass.
func (r *siteRules) begin(set *appsv1.StatefulSet, pods []*corev1.Pod, update string) {
	r.refused = false
	r.pass, r.version = map[string]*corev1.Pod{}, r.reads.Version()
	for _, pod := range pods {
		r.pass[pod.Name] = pod.DeepCopy()
	}
	r.limits, r.update = limitsOf(set), update
	r.moving = set.Status.CurrentRevision != "" && set.Status.CurrentRevision != update
}

// sends: a pass that disrupts no instance begins no deletion and no update.
func (r *siteRules) sends(w *workload.Write) {
	begins := []workload.Action{
		workload.ActionDelete, workload.ActionMark, workload.ActionUnready, workload.ActionUpdate,
	}
	if !r.disrupts && r.mode != groups && slices.Contains(begins, w.Action) {
		r.breaks("a pass that disrupts no instance makes %s", w)
	}
}

// unchanged expects pods as a pass was given them.
func (r *siteRules) unchanged(pods []*corev1.Pod) {
	for _, pod := range pods {
		if !apiequality.Semantic.DeepEqual(pod, r.pass[pod.Name]) {
			r.breaks("the pass has changed its input, pod %s", pod.Name)
		}
	}
}

func (r *siteRules) changed(old, fresh client.Object) {
	before, _ := old.(*corev1.Pod)
	after, _ := fresh.(*corev1.Pod)
	pod := after
	switch {
	case before == nil && after == nil:
		return
	case after == nil:
		pod = before
		delete(r.live, pod.Name)
		if before.DeletionTimestamp == nil {
			r.breaks("%s is lost", pod.Name)
		}
	default:
		r.live[pod.Name] = after
	}
	if before != nil && after != nil {
		if before.Labels[kruise.PodRevisionLabelKey] != after.Labels[kruise.PodRevisionLabelKey] {
			r.moves[pod.UID]++
		}
		if before.Spec.Containers[0].Image != after.Spec.Containers[0].Image {
			r.images[pod.UID]++
		}
	}
	if r.pass != nil {
		r.keepsAvailable(before, after)
		r.keepsReplicas(before, after)
		r.keepsPartition(before, after)
		r.keepsTraffic(before, after)
		r.keepsRoles(before, after)
		r.count(before, after)
		r.written[pod.UID] = math.MaxInt64 // a pod that is gone
		if after != nil {
			r.written[pod.UID], _ = strconv.ParseInt(after.ResourceVersion, 10, 64)
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		labelled := r.policy.Relabel != inplace.RelabelFirst || r.images[pod.UID] <= r.moves[pod.UID]
		if s.RestartCount > r.images[pod.UID] || !labelled {
			const text = "%s restarted %d times, with %d images in %d updates"
			r.breaks(text, pod.Name, s.RestartCount, r.images[pod.UID], r.moves[pod.UID])
		}
	}
}

// keepsAvailable: no write takes away an instance that is available, as far as the pass can see, beyond
// maxUnavailable.
func (r *siteRules) keepsAvailable(before, after *corev1.Pod) {
	if before == nil || !isUp(before) || after != nil && isUp(after) {
		return
	}
	instance := before.Labels[groupLabel]
	if ordinal, ok := r.slot(before); ok && ordinal >= r.limits.Replicas {
		return // a pod without a slot is not missed
	}
	whole := r.whole(r.pass, isUp)
	if !whole[instance] {
		return
	}
	left, unseen := int32(0), int32(0)
	for name := range r.whole(r.live, isUp) {
		if name != instance {
			left++
		}
	}
	now := r.whole(r.live, isUp)
	for name := range whole {
		if name != instance && !now[name] && !r.touched(name) {
			unseen++
		}
	}
	if least := r.limits.Replicas - r.limits.MaxUnavailable; left+unseen < least {
		r.breaks("%s leaves %d available, and %d are the least", before.Name, left, least)
	}
}

// touched reports whether the reconciler has written a pod of an instance since the version that the pass has read.
func (r *siteRules) touched(instance string) bool {
	for _, pod := range r.pass {
		if pod.Labels[groupLabel] == instance && r.written[pod.UID] > r.version {
			return true
		}
	}
	return false
}

// whole are the instances of which something is true of each pod.
func (r *siteRules) whole(pods map[string]*corev1.Pod, is func(*corev1.Pod) bool) map[string]bool {
	n, whole := map[string]int32{}, map[string]bool{}
	for _, pod := range pods {
		if is(pod) {
			n[pod.Labels[groupLabel]]++
		}
	}
	for name := range n {
		if n[name] >= r.size() {
			whole[name] = true
		}
	}
	return whole
}

// leads reports whether a pod is the only one of its instance, or the leader.
func (r *siteRules) leads(pod *corev1.Pod) bool {
	member := pod.Labels[memberLabel]
	return r.size() == 1 || member == "0" || r.layout != nil && member == r.layout[0].Name
}

// keepsReplicas: no more instances are created than replicas.
func (r *siteRules) keepsReplicas(before, after *corev1.Pod) {
	if before != nil || !r.leads(after) {
		return
	}
	n := r.leaders(func(*corev1.Pod) bool { return true })
	if ordinal, ok := r.slot(after); n > r.limits.Replicas && !ok || ok && ordinal >= r.limits.Replicas+r.surge {
		r.breaks("%s is one of %d, and %d are the most", after.Name, n, r.limits.Replicas)
	}
}

// leaders is how many instances something is true of.
func (r *siteRules) leaders(is func(*corev1.Pod) bool) (n int32) {
	for _, pod := range r.live {
		if r.leads(pod) && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && is(pod) {
			n++
		}
	}
	return n
}

// keepsPartition: no instance is updated beyond the partition.
func (r *siteRules) keepsPartition(before, after *corev1.Pod) {
	updated := func(pod *corev1.Pod) bool { return pod.Labels[kruise.PodRevisionLabelKey] == r.update }
	if after == nil || !r.moving || !updated(after) || !r.leads(after) || before != nil && updated(before) {
		return
	}
	if ordinal, ok := r.slot(after); ok {
		if ordinal < r.limits.Partition && !r.hasBegun(after, updated) {
			r.breaks("%s gets the new revision, below the partition of %d", after.Name, r.limits.Partition)
		}
		return
	}
	old := r.leaders(func(pod *corev1.Pod) bool { return !updated(pod) && !r.hasBegun(pod, updated) })
	if r.hasBegun(after, updated) || before == nil && r.refused {
		return // an old one that was not created is created next
	}
	for _, pod := range r.pass { // what the pass could not see
		now := r.live[pod.Name]
		gone := now == nil || now.UID != pod.UID || now.DeletionTimestamp != nil
		wasOld := r.leads(pod) && pod.DeletionTimestamp == nil && !updated(pod)
		if gone && wasOld && r.written[pod.UID] <= r.version {
			old++
		}
	}
	if old < r.limits.Partition {
		r.breaks("%s leaves fewer than %d old ones", after.Name, r.limits.Partition)
	}
}

// hasBegun reports whether the update of a group has begun with another pod than the leader. Pods that follow none
// are updated in any order.
func (r *siteRules) hasBegun(leader *corev1.Pod, updated func(*corev1.Pod) bool) bool {
	for _, pod := range r.podsOf(leader.Labels[groupLabel]) {
		first := len(r.settings(r.roleOf(pod)).After) == 0 && r.group.Roles != nil ||
			r.group.Restart.Policy == workload.RestartPod
		if pod.Name != leader.Name && first && updated(pod) {
			return true
		}
	}
	return false
}

// keepsTraffic: no container changes while a pod of its instance is in traffic, and a pod goes back into traffic only
// when it runs what its spec asks for.
func (r *siteRules) keepsTraffic(before, after *corev1.Pod) {
	if before == nil || after == nil {
		return
	}
	if before.Spec.Containers[0].Image != after.Spec.Containers[0].Image {
		for _, pod := range r.live {
			together := pod.Name == after.Name || r.group.Traffic == workload.TrafficTogether
			if together && pod.Labels[groupLabel] == after.Labels[groupLabel] && inTraffic(pod) {
				r.breaks("%s changes while %s is in traffic", after.Name, pod.Name)
			}
		}
	}
	opens := conditionOf(before, kruise.InPlaceUpdateReady) == corev1.ConditionFalse &&
		conditionOf(after, kruise.InPlaceUpdateReady) == corev1.ConditionTrue
	if s := after.Status.ContainerStatuses; opens && len(s) > 0 && s[0].Image != after.Spec.Containers[0].Image {
		r.breaks("%s goes back into traffic although it runs %s", after.Name, s[0].Image)
	}
}

// count counts the writes of each update in place.
func (r *siteRules) count(before, after *corev1.Pod) {
	if before == nil || after == nil {
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
	if mark == corev1.ConditionTrue && after.Labels[kruise.LifecycleStateKey] == string(kruise.LifecycleStateNormal) {
		r.counted = append(r.counted, r.updates[after.UID])
		delete(r.updates, after.UID)
	}
}

// slot is the ordinal of a pod that has a slot.
func (r *siteRules) slot(pod *corev1.Pod) (int32, bool) {
	name := pod.Name
	if r.numbered {
		name = pod.Labels[groupLabel]
	}
	_, ordinal, ok := ordinals.Split(name)
	return ordinal, ok && (r.mode == slots || r.numbered)
}

// inTraffic reports whether a pod is ready.
func inTraffic(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && conditionOf(pod, corev1.PodReady) == corev1.ConditionTrue
}

func conditionOf(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	if c := lifecycle.ConditionOf(pod, t); c != nil {
		return c.Status
	}
	return ""
}

// isUp reports whether a pod is available.
func isUp(pod *corev1.Pod) bool {
	return inTraffic(pod) && pod.Labels[kruise.LifecycleStateKey] == string(kruise.LifecycleStateNormal)
}
