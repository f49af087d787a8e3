package workload

import (
	"errors"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Children has the instances of a workload be objects of another kind, one each, as the groups of a fleet that have a
// controller of their own. A pass creates and deletes them, and patches their specs, within the limits of Input.Scale.
// Give them as instances with Children.Instances. Input.Build must create them, and Revision.Data is what Patch reads.
//
// An update goes as that of a pod: a hook of Input.Scale lets the object go, Hold takes it out of traffic, GraceSeconds
// pass, Patch changes it, its controller brings it to its spec, Hold puts it back, and its lifecycle state follows.
// Members and Policy do not concern objects, but for Policy.Keys.
type Children struct {
	// Observe returns what the plan counts of an object.
	Observe func(write.Object) Child
	// Patch returns the write that brings an object to a revision, with all by which Observe recognises the revision. An
	// error means that the change is not possible in place.
	Patch func(object write.Object, to *Revision) (*write.Write, error)
	// Hold returns the write that takes an object out of traffic, as by a condition in its status, or puts it back. It
	// returns nil where that is so already. Nil is for objects that stay in traffic.
	Hold func(object write.Object, held bool) *write.Write
}

// Child is an object as the plan looks at it.
type Child struct {
	// Revision that the spec of the object has, as Revision.Name or Revision.Label.
	Revision string
	// Ready means that the object serves, and that its controller has observed its spec: compare the generation with the
	// observed one.
	Ready bool
	// ReadySince is when the object became ready, for Scale.MinReadySeconds.
	ReadySince time.Time
	// Updated means that the controller of the object has brought it to its spec, also where the object is out of traffic.
	// Hold and hooks wait for it.
	Updated bool
	// HeldSince is when Hold took the object out of traffic, for Input.GraceSeconds.
	HeldSince time.Time
	// Failed is why the object does not get to its spec; empty where it does. An object whose update failed, and that does
	// not serve, is recreated. With InPlaceOnly it is reported.
	Failed string
	// Finished means that the object never serves again, so that it is deleted.
	Finished bool
}

// Instances returns objects as instances.
func (c *Children) Instances(in *Input, objects []write.Object) []Instance {
	all := make([]Instance, len(objects))
	for k, object := range objects {
		all[k] = Instance{Name: object.GetName(), Pods: []Pod{{Pod: c.stand(in, object), Child: object}}}
	}
	return all
}

// stand returns the pod that stands for an object where a plan counts pods. Of the labels and annotations that steer a
// pod, it has the mark for deletion, the deletion cost, and with hooks the lifecycle state: the others would have the
// pass write to a pod of the object's name.
func (c *Children) stand(in *Input, object write.Object) *corev1.Pod {
	child, pod := c.Observe(object), &corev1.Pod{ObjectMeta: meta.AsPartialObjectMetadata(object).ObjectMeta}
	pod.Labels, pod.Annotations = map[string]string{}, map[string]string{}
	maps.Copy(pod.Labels, object.GetLabels())
	if in.Scale.Hooks == nil {
		delete(pod.Labels, in.Policy.Keys.LifecycleStateKey())
	}
	pod.Labels[in.revisionLabel()] = child.Revision
	if cost, ok := object.GetAnnotations()[corev1.PodDeletionCost]; ok {
		pod.Annotations[corev1.PodDeletionCost] = cost
	}
	pod.Status.Phase = corev1.PodRunning
	ready := corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(child.ReadySince),
	}
	switch {
	case child.Finished:
		pod.Status.Phase = corev1.PodSucceeded
	case child.Ready:
		ready.Status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{ready}
	return pod
}

// object is what the member is to the API server.
func (m *member) object() write.Object { //nolint:ireturn // of any kind
	if m.child != nil {
		return m.child
	}
	return m.pod
}

// updateChild returns the next write that brings an object to a revision.
func (p *Pass) updateChild(i *instance, m *member, target *Revision) *Write {
	if w, held := p.beforeUpdate(i, m); held {
		return w
	}
	patch, err := p.in.Children.Patch(m.child, target)
	if err != nil {
		return p.blocked(i, m, target, err)
	}
	if patch == nil {
		return nil
	}
	if w := p.holdChild(m, true); w != nil {
		return &Write{Write: *w, Action: ActionUnready, Revision: target.Name}
	}
	grace := time.Duration(p.in.GraceSeconds) * time.Second
	rest := p.in.Children.Observe(m.child).HeldSince.Add(grace).Sub(p.now)
	if rest > 0 && rest <= 2*grace { // a time far ahead is no time to wait for
		p.note(note.Waiting, inplace.NoteGrace, m.pod.Name, "the change is written when the grace period ends")
		p.wake(rest)
		return nil
	}
	if p.in.Scale.Hooks != nil && p.in.Policy.Keys.StateOf(m.pod) != kruise.LifecycleStateUpdating {
		return p.move(i, m, lifecycle.Move{To: kruise.LifecycleStateUpdating, Keys: p.in.Policy.Keys})
	}
	return &Write{Write: *patch, Action: ActionUpdate, Revision: target.Name}
}

// holdChild returns the write that takes an object out of traffic, or puts it back; nil where that is so.
func (p *Pass) holdChild(m *member, held bool) *write.Write {
	if p.in.Children.Hold == nil {
		return nil
	}
	return p.in.Children.Hold(m.child, held)
}

// proceedChild puts an object whose update is complete back into traffic, then moves its state. An object whose update
// failed is recreated.
func (p *Pass) proceedChild(i *instance, m *member) *Write {
	child := p.in.Children.Observe(m.child)
	if p.isComplete(i, m) {
		if w := p.holdChild(m, false); w != nil {
			return &Write{Write: *w, Action: ActionContinue}
		}
	} else if child.Failed != "" && !i.chosen && p.updatesChild(m) && (!child.Ready || p.in.Strategy == InPlaceOnly) {
		return p.blocked(i, m, p.target(), errors.New(child.Failed))
	}
	return p.move(i, m, p.settle(i, m))
}

// updatesChild reports whether an update of an object is under way, by its state or because it is out of traffic.
func (p *Pass) updatesChild(m *member) bool {
	return p.in.Policy.Keys.StateOf(m.pod) == kruise.LifecycleStateUpdating || p.holdChild(m, false) != nil
}

// isComplete reports whether no update of a pod or an object is under way, or about to begin.
func (p *Pass) isComplete(i *instance, m *member) bool {
	if m.child == nil {
		completed, _ := inplace.Completed(m.pod, p.in.Policy)
		return completed
	}
	begins := i.chosen && !p.target().matches(p.in.revisionOf(m.pod))
	return !begins && p.in.Children.Observe(m.child).Updated
}
