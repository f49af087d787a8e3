package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

// Restart is what happens when a pod of an instance fails: when the pod has finished, or Failed reports so.
type Restart struct {
	Policy RestartPolicy
	// BackOff is how long failed pods are kept before the first restart, so that their logs can be read. Each further
	// restart of the same pods waits twice as long as the one before, up to MaxBackOff. Zero restarts at once. Pass the
	// Input.Restarts of the pass before: without them each restart counts as the first.
	BackOff, MaxBackOff time.Duration
	// Failed reports whether a pod has failed that has not finished, and why, as a pod with a container that restarted. It
	// must not report what an update in place restarts. Nil for none.
	Failed func(*corev1.Pod) (why string, failed bool)
}

// isSet reports whether anything is asked for.
func (r *Restart) isSet() bool { return r.Policy != RestartNone || r.BackOff > 0 || r.Failed != nil }

// RestartPolicy is which pods are recreated when a pod fails.
type RestartPolicy string

const (
	// RestartNone recreates pods that have finished or are gone, at once, and a group whose leader has. Containers that
	// restart are left to their node. It is the default.
	RestartNone RestartPolicy = ""
	// RestartPod recreates the pod alone, also where the pod is the leader of a group.
	RestartPod RestartPolicy = "Pod"
	// RestartGroup recreates the group. A pod of the group that another client deletes, as for a drain, restarts the group
	// as well, without a back-off. It requires slots.
	RestartGroup RestartPolicy = "Group"
)

// Restarts are the restarts that back-offs depend on, by the name of the instance, or of the instance and the member.
// They are for the status of the owner: a process that does not store them restarts pods sooner, and nothing else.
type Restarts map[string]Restarted

// Restarted is what is known of the restarts of an instance, or of a member of a group.
type Restarted struct {
	// Count is how often the pods were restarted since they last ran for long.
	Count int32 `json:"count"`
	// FailedAt is when the failure was observed that is not restarted yet.
	FailedAt *metav1.Time `json:"failedAt,omitempty"`
	// RestartedAt is when the pods were restarted last.
	RestartedAt *metav1.Time `json:"restartedAt,omitempty"`
}

// resetAfter is how long after a restart the next failure counts as the first.
const resetAfter = 10 * time.Minute

// restarting is what this pass does about the failed pods of an instance. The zero value does nothing.
type restarting struct {
	// all means that the group is deleted, held that it waits for that with its failed pods.
	all, held bool
	// pods are those that failed. False is for pods that wait for their restart, true for those that are deleted.
	pods map[*corev1.Pod]bool
}

// Restarts returns what is known of restarts after the pass, for the Input.Restarts of the next one.
func (p *Pass) Restarts() Restarts { return maps.Clone(p.restarts) }

// observeRestarts finds the failed pods, and decides which are restarted now.
func (p *Pass) observeRestarts() {
	r := &p.in.Group.Restart
	if !r.isSet() {
		return
	}
	p.restarts, p.restarting = Restarts{}, map[string]restarting{}
	for k := range p.in.Instances {
		i := &p.in.Instances[k]
		if failed := p.failedPods(i); r.Policy == RestartGroup {
			p.restarting[i.Name] = p.restartGroup(i, failed)
		} else {
			p.restarting[i.Name] = p.restartPods(i, failed)
		}
	}
	p.keepGone()
}

// restartPods decides about each pod of an instance by itself.
func (p *Pass) restartPods(i *Instance, failed map[*corev1.Pod]string) restarting {
	r := restarting{pods: map[*corev1.Pod]bool{}}
	for _, pod := range i.Pods {
		if pod.Pod == nil || p.isSurplus(pod.Member) {
			continue
		}
		key := i.Name
		if len(p.in.Members) > 0 {
			key += "/" + pod.Member
		}
		why, has := failed[pod.Pod]
		if restarts := p.restart(key, pod.Name, why, has); has {
			r.pods[pod.Pod] = restarts
		}
	}
	return r
}

// keepGone keeps what is known of pods that do not exist now, and whose successors are about to be created.
func (p *Pass) keepGone() {
	for key, known := range p.in.Restarts {
		name, member, _ := strings.Cut(key, "/")
		exists := func(i Instance) bool {
			has := func(pod Pod) bool { return pod.Pod != nil && pod.Member == member }
			return i.Name == name && (member == "" || slices.ContainsFunc(i.Pods, has))
		}
		isMember := member == "" || slices.ContainsFunc(p.in.Members, func(m Member) bool { return m.Name == member })
		wanted := p.in.Scale.Slots != nil && p.isWanted(name) ||
			slices.ContainsFunc(p.in.Instances, func(i Instance) bool { return i.Name == name })
		if isMember && wanted && !slices.ContainsFunc(p.in.Instances, exists) {
			p.remember(key, p.recent(known))
		}
	}
}

// recent is what is known of restarts, and nothing where the pods have run for long since the last one.
func (p *Pass) recent(known Restarted) Restarted {
	if since := known.RestartedAt; known.FailedAt == nil && since != nil && p.now.Sub(since.Time) >= resetAfter {
		return Restarted{}
	}
	return known
}

// failedPods returns why pods of an instance have failed. Those whose deletion has begun are not among them.
func (p *Pass) failedPods(i *Instance) map[*corev1.Pod]string {
	failed := map[*corev1.Pod]string{}
	for _, pod := range i.Pods {
		if pod.Pod == nil || pod.DeletionTimestamp != nil || p.isSurplus(pod.Member) ||
			p.in.Policy.Keys.StateOf(pod.Pod) == kruise.LifecycleStatePreparingDelete {
			continue
		}
		why, has := "it has finished", IsFinished(pod.Pod)
		if isFailed := p.in.Group.Restart.Failed; !has && isFailed != nil {
			why, has = isFailed(pod.Pod)
		}
		if has {
			failed[pod.Pod] = why
		}
	}
	return failed
}

// restartGroup decides about a group of which pods have failed, or whose deletion has begun.
func (p *Pass) restartGroup(i *Instance, failed map[*corev1.Pod]string) restarting {
	begun := slices.ContainsFunc(i.Pods, func(pod Pod) bool {
		return pod.Pod != nil && !p.isSurplus(pod.Member) && (pod.DeletionTimestamp != nil ||
			p.in.Policy.Keys.StateOf(pod.Pod) == kruise.LifecycleStatePreparingDelete)
	})
	if begun {
		p.remember(i.Name, p.in.Restarts[i.Name])
		return restarting{all: true}
	}
	first, why := "", ""
	for pod, text := range failed {
		if first == "" || pod.Name < first {
			first, why = pod.Name, text
		}
	}
	restarts := p.restart(i.Name, first, why, len(failed) > 0)
	r := restarting{all: restarts, held: !restarts && len(failed) > 0, pods: map[*corev1.Pod]bool{}}
	for pod := range failed {
		r.pods[pod] = restarts
	}
	return r
}

// restart reports whether what has failed is restarted now. Else it waits for the end of its back-off.
func (p *Pass) restart(key, pod, why string, failed bool) bool {
	known, r := p.recent(p.in.Restarts[key]), &p.in.Group.Restart
	if !failed {
		known.FailedAt = nil
		p.remember(key, known)
		return false
	}
	if known.FailedAt == nil || known.FailedAt.After(p.now) {
		known.FailedAt = &metav1.Time{Time: p.now}
	}
	if rest := known.FailedAt.Add(r.backOff(known.Count)).Sub(p.now); rest > 0 {
		p.note(note.Waiting, NoteRestart, pod,
			fmt.Sprintf("%s; it is kept until its restart, which is number %d", why, known.Count+1))
		p.wake(rest)
		p.remember(key, known)
		return false
	}
	p.note(note.Info, NoteRestart, pod, fmt.Sprintf("%s; this is its restart number %d", why, known.Count+1))
	now := metav1.NewTime(p.now)
	p.remember(key, Restarted{Count: known.Count + 1, RestartedAt: &now})
	return true
}

// backOff is how long failed pods wait after some restarts.
func (r *Restart) backOff(restarts int32) time.Duration {
	wait := r.BackOff
	for range min(restarts, 30) {
		if wait >= r.MaxBackOff/2 {
			return max(r.MaxBackOff, r.BackOff)
		}
		wait *= 2
	}
	return wait
}

// remember keeps what is known of an instance that exists.
func (p *Pass) remember(key string, known Restarted) {
	if known != (Restarted{}) {
		p.restarts[key] = known
	}
}

// keeps reports whether a failed pod waits for its restart.
func (p *Pass) keeps(instance string, pod *corev1.Pod) bool {
	restarts, failed := p.restarting[instance].pods[pod]
	return failed && !restarts
}
