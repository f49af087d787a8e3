package workload

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/write"
)

// Children has the instances of a workload be objects of another kind, one each, as the groups of a fleet that have a
// controller of their own. A pass creates and deletes them, and patches their specs, within the limits of Input.Scale.
// Give them as instances with Children.Instances. Input.Build must create them, and Revision.Data is what Patch reads.
// Members, Hooks of pods, GraceSeconds and Policy do not concern them.
type Children struct {
	// Observe returns what the plan counts of an object.
	Observe func(write.Object) Child
	// Patch returns the write that brings an object to a revision, with all by which Observe recognises the revision. An
	// error means that the change is not possible in place.
	Patch func(object write.Object, to *Revision) (*write.Write, error)
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
// pod, it has the mark for deletion and the deletion cost: the others would have the pass write to a pod of the
// object's name.
func (c *Children) stand(in *Input, object write.Object) *corev1.Pod {
	child := c.Observe(object)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp(),
		DeletionTimestamp: object.GetDeletionTimestamp(),
		Labels:            map[string]string{}, Annotations: map[string]string{},
	}}
	maps.Copy(pod.Labels, object.GetLabels())
	delete(pod.Labels, in.Policy.Keys.LifecycleStateKey())
	pod.Labels[in.revisionLabel()] = child.Revision
	if cost, has := object.GetAnnotations()[corev1.PodDeletionCost]; has {
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

// updateChild returns the write that brings an object to a revision.
func (p *Pass) updateChild(i *instance, m *member, target *Revision) *Write {
	w, err := p.in.Children.Patch(m.child, target)
	switch {
	case err != nil:
		return p.blocked(i, m, target, err)
	case w == nil:
		return nil
	}
	return &Write{Write: *w, Action: ActionUpdate, Revision: target.Name}
}
