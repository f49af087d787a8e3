package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// rules are what must never happen. They are tried after every single write.
type rules struct {
	*world
	// writing says that it is the controller who writes.
	writing bool
	// seen is what the controller decides upon, touched are the pods that it has written since.
	seen    *snapshot
	touched map[types.UID]bool
	// images counts how often the image of a container was changed, moves how often a pod went to another revision.
	images, moves map[types.UID]int32
	// crashes are those of pods that restart by themselves.
	crashes map[types.UID]int32
	// updates are the writes of the controller in the updates in place that are under way, and of those that are done.
	updates map[types.UID]int
	counted []int
	// created counts pods, refused the writes that the server refused.
	created, refused int
}

func newRules(w *world) *rules {
	return &rules{
		world: w, touched: map[types.UID]bool{}, images: map[types.UID]int32{}, moves: map[types.UID]int32{}, crashes: map[types.UID]int32{}, updates: map[types.UID]int{},
	}
}

// reads is what the controller has before its eyes from now on.
func (r *rules) reads(s *snapshot) {
	r.seen = s
	clear(r.touched)
}

// answered looks at what the server said to a patch. A test that fails is no fault, as the pod has changed meanwhile.
func (r *rules) answered(err error) {
	if err != nil {
		r.refused++
	}
}

// failed reports whether a turn may end like this.
func (r *rules) failed(err error) {
	if r.settings.lag == 0 {
		r.fail("a turn fails although what it saw was new: %v", err)
	}
	if apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "a patch of") {
		r.fail("no server takes this: %v", err)
	}
}

// judge looks at a write that was made.
func (r *rules) judge(w apiWrite) {
	pod := w.pod()
	r.count(w)
	if w.by == "controller" {
		r.touched[pod.UID] = true
		r.keepsAvailable(w)
		r.keepsSurge(w)
		r.keepsPartition(w)
		r.keepsTraffic(w)
		r.keepsPromise(w)
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.RestartCount > r.images[pod.UID]+r.crashes[pod.UID] {
			r.fail("container %s of %s restarted %d times, for %d changes and %d crashes", s.Name, pod.Name, s.RestartCount, r.images[pod.UID], r.crashes[pod.UID])
		}
	}
	if r.images[pod.UID] > r.moves[pod.UID] {
		r.fail("%s got %d images in %d updates", pod.Name, r.images[pod.UID], r.moves[pod.UID])
	}
}

func (r *rules) count(w apiWrite) {
	if w.before == nil {
		r.created++
		return
	}
	if w.after == nil {
		return
	}
	uid := w.after.UID
	if w.before.Labels[kruise.PodRevisionLabelKey] != w.after.Labels[kruise.PodRevisionLabelKey] {
		r.moves[uid]++
	}
	if changesContainers(w) {
		r.images[uid]++
	}
	if w.by != "controller" {
		return
	}
	mark := conditionOf(w.after, kruise.InPlaceUpdateReady)
	if mark == corev1.ConditionFalse && conditionOf(w.before, kruise.InPlaceUpdateReady) != mark {
		r.updates[uid] = 0
	}
	if _, ok := r.updates[uid]; !ok {
		return
	}
	r.updates[uid]++
	if mark == corev1.ConditionTrue && inState(w.after, kruise.LifecycleStateNormal) {
		r.counted = append(r.counted, r.updates[uid])
		delete(r.updates, uid)
	}
}

// changesContainers reports whether a container has to start again for a write.
func changesContainers(w apiWrite) bool {
	for i := range w.after.Spec.Containers {
		before, after := &w.before.Spec.Containers[i], &w.after.Spec.Containers[i]
		if before.Image != after.Image {
			return true
		}
		was, err := inplace.EnvHash(before, w.before.Labels, w.before.Annotations)
		is, err2 := inplace.EnvHash(after, w.after.Labels, w.after.Annotations)
		if err != nil || err2 != nil || was != is {
			return true
		}
	}
	return false
}

// keepsAvailable: the controller takes away nothing that is available, as far as it can know, when no more may be
// unavailable.
func (r *rules) keepsAvailable(w apiWrite) {
	if w.before == nil || !r.wasUp(groupOf(w.before)) || r.seen.shop.Spec.Slots && r.slot(w.before) >= r.seen.shop.Spec.Replicas {
		return // whatever has no place is not missed
	}
	before, after := r.available(w.pod().Name, w.before), r.available(w.pod().Name, w.after)
	if after >= before {
		return
	}
	l, err := r.seen.shop.Spec.limits()
	r.check(err)
	if least := l.Replicas - l.MaxUnavailable; after+r.unseen(r.isUp) < least {
		r.fail("%s leaves %d available, and %d are the least", w.pod().Name, after, least)
	}
}

// wasUp reports whether an instance was available when the controller looked.
func (r *rules) wasUp(name string) bool {
	n := 0
	for _, pod := range r.seen.pods {
		if groupOf(pod) == name && r.isUp(pod) {
			n++
		}
	}
	return n >= max(r.seen.shop.Spec.Size, 1)
}

// keepsSurge: no more are created than there may be.
func (r *rules) keepsSurge(w apiWrite) {
	if w.before != nil || w.after.Labels[groupKey] != "" {
		return
	}
	l, err := r.seen.shop.Spec.limits()
	r.check(err)
	most := l.Replicas + l.MaxSurge
	if r.seen.shop.Spec.Paused {
		most = l.Replicas
	}
	if n := r.instances(func(*corev1.Pod) bool { return true }); n > most {
		r.fail("%s is one of %d, and %d are the most", w.after.Name, n, most)
	}
}

// keepsPartition: the controller updates no more than the partition lets it, in either direction.
func (r *rules) keepsPartition(w apiWrite) {
	if w.after == nil || w.after.Labels[groupKey] != "" && w.before == nil {
		return
	}
	update := r.last.update.Name
	revisionOf := func(pod *corev1.Pod) string { return pod.Labels[kruise.PodRevisionLabelKey] }
	if r.last.update == r.last.current || w.before != nil && revisionOf(w.before) == revisionOf(w.after) {
		return
	}
	l, err := r.seen.shop.Spec.limits()
	r.check(err)
	updated := func(pod *corev1.Pod) bool { return revisionOf(pod) == update }
	old := func(pod *corev1.Pod) bool { return !updated(pod) }
	if r.seen.shop.Spec.Slots {
		if updated(w.after) && r.slot(w.after) < l.Partition {
			r.fail("%s goes to the new revision, below the partition of %d", w.after.Name, l.Partition)
		}
		return
	}
	// A plan moves pods back also where it could as well make the old ones that are missing.
	missing := r.instances(func(*corev1.Pod) bool { return true }) < l.Replicas
	switch {
	case updated(w.after) && r.instancesWith(old)+r.unseen(old) < l.Partition:
		r.fail("%s leaves fewer than %d old ones", w.after.Name, l.Partition)
	case w.before != nil && w.before.Labels[groupKey] != "":
		// The rest of a group follows its leader.
	case w.before != nil && old(w.after) && !missing && r.instances(updated)+r.unseen(updated) < l.Replicas-l.Partition:
		r.fail("%s goes back and leaves fewer than %d updated ones", w.after.Name, l.Replicas-l.Partition)
	}
}

// slot is the place of a pod.
func (r *rules) slot(pod *corev1.Pod) (at int32) {
	_, err := fmt.Sscanf(pod.Name, r.seen.shop.Name+"-%d", &at)
	r.check(err)
	return at
}

// keepsTraffic: no container is changed while its pod is in traffic, where there is a gate to take it out.
func (r *rules) keepsTraffic(w apiWrite) {
	if w.before != nil && w.after != nil && w.subresource == "" && changesContainers(w) {
		r.restarting(w.after)
	}
}

// keepsPromise: a pod whose containers are ready goes back into traffic only when they run what its spec says.
func (r *rules) keepsPromise(w apiWrite) {
	mark := conditionOf(w.pod(), kruise.InPlaceUpdateReady)
	if w.before == nil || mark != corev1.ConditionTrue || conditionOf(w.before, corev1.ContainersReady) != corev1.ConditionTrue || conditionOf(w.before, kruise.InPlaceUpdateReady) != corev1.ConditionFalse {
		return
	}
	for _, c := range w.pod().Spec.Containers {
		if runs := r.nodes.runs[w.pod().UID][c.Name]; runs != nil && runs.image != c.Image {
			r.fail("%s is put back although it runs %s", w.pod().Name, runs.image)
		}
	}
}

// restarting is called before a node restarts a container for its new image.
func (r *rules) restarting(pod *corev1.Pod) {
	if hasGate(pod, kruise.InPlaceUpdateReady) && conditionOf(pod, corev1.PodReady) == corev1.ConditionTrue {
		r.fail("%s is restarted in traffic", pod.Name)
	}
}

// isAvailable is as simple as it can be said.
func (r *rules) isAvailable(pod *corev1.Pod) (ok bool, why string) {
	switch {
	case !isActive(pod):
		return false, "it ends"
	case pod.Status.Phase != corev1.PodRunning:
		return false, "it does not run"
	case pod.Labels[kruise.LifecycleStateKey] != "" && !inState(pod, kruise.LifecycleStateNormal):
		return false, "its state is " + pod.Labels[kruise.LifecycleStateKey]
	case conditionOf(pod, kruise.InPlaceUpdateReady) != corev1.ConditionTrue:
		return false, "it is not marked ready"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			long := time.Duration(r.server.shop.Spec.MinReadySeconds) * time.Second
			if ready := r.now().Sub(c.LastTransitionTime.Time); ready < long {
				return false, fmt.Sprintf("it is ready for %s only", ready)
			}
			return true, ""
		}
	}
	return false, "it is not ready"
}

func (r *rules) isUp(pod *corev1.Pod) bool {
	ok, _ := r.isAvailable(pod)
	return ok
}

func isActive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil }

func inState(pod *corev1.Pod, s kruise.LifecycleState) bool {
	return pod.Labels[kruise.LifecycleStateKey] == string(s)
}

// available is how many instances are, with a pod as given; nil for none.
func (r *rules) available(name string, instead *corev1.Pod) int32 {
	up := map[string]int{}
	for _, o := range r.server.pods {
		if o.pod.Name != name && r.isUp(o.pod) {
			up[groupOf(o.pod)]++
		}
	}
	if instead != nil && r.isUp(instead) {
		up[groupOf(instead)]++
	}
	n := int32(0)
	for _, pods := range up {
		if pods >= max(r.seen.shop.Spec.Size, 1) {
			n++
		}
	}
	return n
}

// instances is how many there are of which something is true of all pods.
func (r *rules) instances(is func(*corev1.Pod) bool) int32 {
	return r.tally(func(group []*corev1.Pod) bool {
		return !slices.ContainsFunc(group, func(p *corev1.Pod) bool { return !is(p) })
	})
}

// instancesWith is how many there are of which something is true of a pod.
func (r *rules) instancesWith(is func(*corev1.Pod) bool) int32 {
	return r.tally(func(group []*corev1.Pod) bool { return slices.ContainsFunc(group, is) })
}

func (r *rules) tally(counts func([]*corev1.Pod) bool) int32 {
	groups := map[string][]*corev1.Pod{}
	for _, o := range r.server.pods {
		if leader := r.server.pod(groupOf(o.pod)); leader != nil && isActive(leader) && isActive(o.pod) {
			groups[leader.Name] = append(groups[leader.Name], o.pod)
		}
	}
	n := int32(0)
	for _, group := range groups {
		if counts(group) {
			n++
		}
	}
	return n
}

// unseen is how many pods something was true of when the controller looked, and is not any more, by no deed of its own.
func (r *rules) unseen(is func(*corev1.Pod) bool) int32 {
	n := int32(0)
	for _, pod := range r.seen.pods {
		if r.touched[pod.UID] || !isActive(pod) || !is(pod) {
			continue
		}
		if now := r.server.pod(pod.Name); now == nil || now.UID != pod.UID || !isActive(now) || !is(now) {
			n++
		}
	}
	return n
}

func stateOf(m *metav1.ObjectMeta) string { return m.Labels[kruise.LifecycleStateKey] }
