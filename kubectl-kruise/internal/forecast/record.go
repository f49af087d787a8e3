package forecast

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
)

// record is what happens to the pods of a workload in a simulation.
type record struct {
	*simulation

	owner types.UID
	// owners are the workload and the ReplicaSets of a Deployment.
	owners owners
	// update is the revision that pods are updated to, once the reconciler has reported it.
	update string
	pods   map[types.UID]*history
	// names are the histories of the pods that exist, by their names.
	names map[string]*history
	// batches are the times at which updates begin, in order.
	batches  []time.Time
	timeline []Moment
	// available is when the next pod has been ready for long enough; zero for none.
	available time.Time
}

// history is what happens to one pod.
type history struct {
	// first and last are the pod at the begin and at the end; last is nil for a pod that is gone. first is nil for a new
	// pod.
	first, last *corev1.Pod
	name        string
	// began is when the update or the deletion of the pod began; zero for never.
	began time.Time
	// marked means that the pod was chosen for deletion by its update.
	marked bool
	// restarts are the containers that restarted, by name.
	restarts map[string]bool
	hooks    []string
	// why are the notes about the pod by code, the latest of each.
	why map[string]note.Note
}

func (r *record) owns(pod *corev1.Pod) bool {
	if r.kind.owns != nil {
		return r.kind.owns(r.name, pod)
	}
	return r.owners.control(pod)
}

// own notes an object through which the workload has its pods.
func (r *record) own(o client.Object) {
	if set, ok := o.(*appsv1.ReplicaSet); ok && r.owners.control(set) {
		r.owners[set.UID] = true
	}
}

// of returns the history of a pod.
func (r *record) of(pod *corev1.Pod) *history {
	h := r.pods[pod.UID]
	if h == nil {
		h = &history{name: r.nameOf(pod), restarts: map[string]bool{}, why: map[string]note.Note{}}
		r.pods[pod.UID] = h
	}
	return h
}

// change is called after each change of an object.
func (r *record) change(before, after client.Object) {
	was, _ := before.(*corev1.Pod)
	is, _ := after.(*corev1.Pod)
	switch {
	case was == nil && is == nil:
		r.own(after)
		if after != nil && after.GetUID() == r.owner {
			r.update = cmp.Or(r.kind.facts(after).update, r.update)
		}
	case is == nil:
		if h := r.pods[was.UID]; h != nil {
			h.last = nil
		}
	case r.owns(is):
		h := r.of(is)
		h.last, r.names[h.name] = is, h
		if was != nil {
			r.compare(h, was, is)
		}
	}
}

// compare notes what is new with a pod.
func (r *record) compare(h *history, was, is *corev1.Pod) {
	h.marked = h.marked || isMarked(is) && !isMarked(was)
	begins := r.begins(was, is)
	if begins && h.began.IsZero() && h.first != nil {
		h.began = r.clock
		if n := len(r.batches); n == 0 || r.batches[n-1].Before(r.clock) {
			r.batches = append(r.batches, r.clock)
		}
	}
	for i := range is.Status.ContainerStatuses {
		now := &is.Status.ContainerStatuses[i]
		if old := statusOf(was, now.Name); old != nil && old.RestartCount != now.RestartCount {
			h.restarts[now.Name] = true
		}
	}
}

// begins reports whether the update or the deletion of a pod begins with a change of the pod.
func (r *record) begins(was, is *corev1.Pod) bool {
	switch {
	case isMarked(is) && !isMarked(was), is.DeletionTimestamp != nil && was.DeletionTimestamp == nil:
		return true
	case r.revisionOf(was) != r.revisionOf(is), len(changedImages(was, is)) > 0:
		return true
	case isTrue(was, kruise.InPlaceUpdateReady) && !isTrue(is, kruise.InPlaceUpdateReady):
		return true
	}
	state := lifecycle.StateOf(is)
	if state == lifecycle.StateOf(was) {
		return false
	}
	return state == kruise.LifecycleStatePreparingUpdate || state == kruise.LifecycleStatePreparingDelete ||
		state == kruise.LifecycleStateUpdating
}

func isMarked(pod *corev1.Pod) bool { return pod.Labels[kruise.SpecifiedDeleteKey] != "" }

// explain keeps the notes about single pods.
func (r *record) explain(notes []note.Note) {
	for _, n := range notes {
		if h := r.names[n.Object]; h != nil && h.last != nil {
			h.why[n.Code] = n
		}
	}
}

// hook notes that a pod waits for a hook.
func (r *record) hook(pod *corev1.Pod, name string) {
	if h := r.pods[pod.UID]; h != nil && !slices.Contains(h.hooks, name) {
		h.hooks = append(h.hooks, name)
	}
}

// count adds what is counted now, where that has changed.
func (r *record) count(ctx context.Context) error {
	pods, err := r.simulation.pods(ctx)
	if err != nil {
		return err
	}
	m := Moment{At: Seconds(r.clock.Sub(r.begin))}
	r.available = time.Time{}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			m.Terminating++
			continue
		}
		m.Pods++
		if revision.Match(r.revisionOf(pod), r.update) {
			m.Updated++
		}
		is, wait := r.simulation.available(pod)
		if is {
			m.Available++
		}
		if at := later(r.clock, r.clock.Add(wait)); wait > 0 && (r.available.IsZero() || at.Before(r.available)) {
			r.available = at
		}
	}
	if n := len(r.timeline); n > 0 {
		same := r.timeline[n-1]
		if same.At = m.At; same == m {
			return nil
		}
	}
	r.timeline = append(r.timeline, m)
	return nil
}

// nextAvailable is when the next pod has been ready for long enough; zero for none.
func (r *record) nextAvailable() time.Time { return r.available }

// revisionOf is the revision of a pod.
func (r *record) revisionOf(pod *corev1.Pod) string {
	if r.kind.revision != nil {
		return r.kind.revision(r.name, pod)
	}
	return (*kruise.Keys)(nil).RevisionOf(pod)
}

// nameOf is the name of a pod, with the namespace where the workload has none.
func (r *record) nameOf(pod *corev1.Pod) string {
	if r.name.Namespace == "" {
		return pod.Namespace + "/" + pod.Name
	}
	return pod.Name
}

// changedImages are the images of containers that another pod has not, by container.
func changedImages(was, is *corev1.Pod) map[string]string {
	images := map[string]string{}
	for i := range is.Spec.Containers {
		if c := &is.Spec.Containers[i]; i < len(was.Spec.Containers) && was.Spec.Containers[i].Image != c.Image {
			images[c.Name] = c.Image
		}
	}
	return images
}
