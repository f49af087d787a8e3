package workload_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
)

// keepsRoles are the rules of the roles of a group.
func (r *siteRules) keepsRoles(before, after *corev1.Pod) {
	if r.layout == nil {
		return
	}
	switch {
	case before == nil:
	case isUp(before) && (after == nil || !isUp(after)):
		r.keepsBounds(before)
	}
	deleted := before != nil && before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil)
	switch {
	case deleted:
		r.keepsDeletionOrder(before)
	case before != nil && after != nil &&
		before.Labels[kruise.PodRevisionLabelKey] != after.Labels[kruise.PodRevisionLabelKey]:
		r.keepsUpdateOrder(after)
	}
}

// settings are those of a role.
func (r *siteRules) settings(name string) workload.Role {
	for _, role := range r.group.Roles {
		if role.Name == name {
			return role
		}
	}
	return workload.Role{}
}

// of are the live pods of a group, as far as the pass can see that they are or are not available: a pod that has
// become unavailable for another reason since the pass read it counts as before.
func (r *siteRules) of(group string, is func(*corev1.Pod) bool) (n int32) {
	for name, pod := range r.live {
		if pod.Labels[groupLabel] == group && is(pod) && isUp(r.seen(name, pod)) {
			n++
		}
	}
	return n
}

// seen is a pod as the pass sees it, or as the reconciler has written it since.
func (r *siteRules) seen(name string, live *corev1.Pod) *corev1.Pod {
	if old := r.pass[name]; old != nil && old.UID == live.UID && r.written[live.UID] <= r.version {
		return old
	}
	return live
}

// keepsBounds: no write takes a pod out of traffic beyond the bound of its role. A group that goes as a whole has none.
func (r *siteRules) keepsBounds(pod *corev1.Pod) {
	if r.group.Traffic == workload.TrafficTogether || r.goes(pod.Labels[groupLabel]) {
		return
	}
	group, role := pod.Labels[groupLabel], r.roleOf(pod)
	if most := r.settings(role).MaxUnavailable; most != nil {
		up := r.of(group, func(p *corev1.Pod) bool { return p.Name != pod.Name && r.roleOf(p) == role })
		size := int32(0)
		for _, m := range r.layout {
			if m.Role == role {
				size++
			}
		}
		if up < size-*most {
			r.breaks("%s leaves %d pods available of role %s in group %s", pod.Name, up, role, group)
		}
	}
}

// planned notes which groups go as a whole.
func (r *siteRules) planned(plan scale.Result) {
	for _, i := range plan.Delete {
		r.going[i.Name] = true
	}
}

// goes reports whether a group is deleted: the plan deletes it, a user has chosen it, or its leader is gone.
func (r *siteRules) goes(group string) bool {
	r.planned(r.plan.Result())
	marked, leader := false, false
	for _, pods := range []map[string]*corev1.Pod{r.live, r.pass} {
		leader = false // what the pass sees counts
		for _, pod := range pods {
			if pod.Labels[groupLabel] != group {
				continue
			}
			leader = leader || r.leads(pod) && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed
			marked = marked || pod.Labels[kruise.SpecifiedDeleteKey] != ""
		}
	}
	whole := r.group.Blocked == workload.BlockedGroup && r.group.Restart.Policy == workload.RestartNone
	first := r.live[group+"-"+r.layout[0].Name]
	if whole && first != nil && first.DeletionTimestamp != nil {
		return true // the group is recreated
	}
	return !leader || marked || r.going[group]
}

func (r *siteRules) podsOf(group string) (pods []*corev1.Pod) {
	for _, pod := range r.live {
		if pod.Labels[groupLabel] == group {
			pods = append(pods, pod)
		}
	}
	return pods
}

// before are the live pods that come before a pod, and whether all of them exist.
func (r *siteRules) before(pod *corev1.Pod) (all []*corev1.Pod, complete bool) {
	after, complete := r.settings(r.roleOf(pod)).After, true
	pods := r.podsOf(pod.Labels[groupLabel])
	for _, m := range r.layout {
		if !slices.Contains(after, m.Role) {
			continue
		}
		k := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Labels[memberLabel] == m.Name })
		if k < 0 {
			complete = false
			continue
		}
		all = append(all, pods[k])
	}
	return all, complete
}

// keepsUpdateOrder: a pod is updated when those before it have the revision, and with TrafficEach are available.
func (r *siteRules) keepsUpdateOrder(pod *corev1.Pod) {
	all, complete := r.before(pod)
	for _, other := range all {
		other = r.seen(other.Name, other)
		ready := r.group.Traffic == workload.TrafficTogether || isUp(other)
		if other.Labels[kruise.PodRevisionLabelKey] != pod.Labels[kruise.PodRevisionLabelKey] || !ready {
			r.breaks("%s is updated before %s", pod.Name, other.Name)
		}
	}
	if !complete && len(r.pass) == len(r.live) {
		r.breaks("%s is updated before all that come before it exist", pod.Name)
	}
	role := r.settings(r.roleOf(pod))
	if role.Last == nil || !role.Last(pod) {
		return
	}
	for _, other := range r.podsOf(pod.Labels[groupLabel]) {
		other = r.seen(other.Name, other)
		if other.Name != pod.Name && r.roleOf(other) == role.Name && !role.Last(other) &&
			other.Labels[kruise.PodRevisionLabelKey] != pod.Labels[kruise.PodRevisionLabelKey] {
			r.breaks("%s is updated before %s although it is the last", pod.Name, other.Name)
		}
	}
}

// keepsDeletionOrder: with RestartPod the leader of a whole group is deleted when the others are gone.
func (r *siteRules) keepsDeletionOrder(pod *corev1.Pod) {
	if r.group.Restart.Policy != workload.RestartPod || r.lag > 0 || r.group.Blocked != workload.BlockedGroup {
		return
	}
	for _, other := range r.podsOf(pod.Labels[groupLabel]) {
		if r.leads(pod) && !r.leads(other) && pod.Status.Phase == corev1.PodRunning {
			r.breaks("%s is deleted while %s exists", pod.Name, other.Name)
		}
	}
}
