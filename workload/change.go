package workload

import (
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// changes are the differences between the templates of two revisions. Each is computed once in a pass.
type changes struct {
	in      *Input
	known   map[changeKey]change
	decoded map[string]map[string]*corev1.PodTemplateSpec
}

func newChanges(in *Input) changes {
	return changes{in, map[changeKey]change{}, map[string]map[string]*corev1.PodTemplateSpec{}}
}

type changeKey struct{ from, to, role string }

type change struct {
	change  *inplace.Change
	blocked error
}

// of returns the change from the revision in a pod's label to another one, or why it is not possible in place.
func (c *changes) of(label string, to *Revision, role string) (*inplace.Change, error) {
	key := changeKey{revision.Short(label), to.Name, role}
	if known, ok := c.known[key]; ok {
		return known.change, known.blocked
	}
	made := change{}
	made.change, made.blocked = c.diff(label, to, role)
	c.known[key] = made
	return made.change, made.blocked
}

func (c *changes) diff(label string, to *Revision, role string) (*inplace.Change, error) {
	from := c.in.revision(label)
	if from == nil {
		return nil, fmt.Errorf("the revision %q of the pod is not stored any more", label)
	}
	if to.Data == nil {
		return nil, fmt.Errorf("the revision %s is not stored", to.Name)
	}
	if from.Fixed != "" && to.Fixed != "" && from.Fixed != to.Fixed {
		return nil, errors.New("the revisions differ in what no running pod can change, as volume claim templates")
	}
	before, err := c.template(from, role)
	if err != nil {
		return nil, err
	}
	after, err := c.template(to, role)
	if err != nil {
		return nil, err
	}
	return inplace.Diff(before, after, c.in.Policy)
}

// template decodes a template of a revision, once in a pass.
func (c *changes) template(r *Revision, role string) (*corev1.PodTemplateSpec, error) {
	if c.decoded[r.Name] == nil {
		roles, err := c.in.Layout.Decode(r.Data)
		if err != nil {
			return nil, fmt.Errorf("revision %s: %w", r.Name, err)
		}
		c.decoded[r.Name] = roles
	}
	template := c.decoded[r.Name][role]
	if template == nil {
		return nil, fmt.Errorf("revision %s has no template %q", r.Name, role)
	}
	return template, nil
}

// revision finds a revision with data by its name or hash.
func (in *Input) revision(label string) *Revision {
	for _, r := range []*Revision{&in.Update, &in.Current} {
		if r.Data != nil && r.matches(label) {
			return r
		}
	}
	for i := range in.Revisions {
		if r := &in.Revisions[i]; r.Data != nil && r.matches(label) {
			return r
		}
	}
	return nil
}

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
