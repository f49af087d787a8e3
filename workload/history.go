package workload

import (
	"cmp"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// Owner is the object whose pods and revisions these are.
type Owner struct {
	// Namespace of the pods.
	Namespace string
	// Reference is the controller reference that new objects get.
	Reference metav1.OwnerReference
	// Labels are those by which the pods and the revisions of the owner are listed. New objects get them.
	Labels map[string]string
}

// OwnedBy returns the owner that an object of a kind is.
func OwnedBy(object metav1.Object, kind schema.GroupVersionKind, listedBy map[string]string) Owner {
	return Owner{
		Namespace: object.GetNamespace(), Reference: *metav1.NewControllerRef(object, kind), Labels: listedBy,
	}
}

// History is the template of a workload, and its revisions.
type History struct {
	// Data is what revision.Encode or revision.EncodeRoles returned for the template, or the templates, or data of
	// Input.Layout.
	Data []byte
	// Stored are the revisions that exist.
	Stored []*appsv1.ControllerRevision
	// Current is the name of the current revision in the status, Collisions the collision count there.
	Current    string
	Collisions *int32
	// Limit is how many revisions stay besides those that pods have.
	Limit int32
}

// SetHistory sets the revisions of the input, and has the pass store the newest one before all else and delete those
// beyond the limit at the end. Set Input.Owner and Input.Layout first.
func (in *Input) SetHistory(h History) error {
	r := revision.Resolve(revision.Input{
		Owner: in.Owner.Reference.Name, Data: h.Data, Have: h.Stored, Current: h.Current, Collisions: h.Collisions,
		Same: in.Layout.Same,
	})
	store, err := revision.Store(revision.Wanted{
		Resolution: r, Namespace: in.Owner.Namespace, Owner: in.Owner.Reference,
		Labels: in.Owner.Labels, Select: in.Owner.Labels,
	})
	if err != nil {
		return err
	}
	in.Store, in.Stored, in.HistoryLimit, in.Collisions = store, h.Stored, h.Limit, r.Collisions
	in.SetRevisions(r, store.Newest(), h.Stored)
	return nil
}

// SetRevisions sets the revisions that pods go to and come from, and nothing that stores them: r is what
// revision.Resolve found, newest the revision of the wanted templates, and stored are the revisions that exist.
func (in *Input) SetRevisions(
	r revision.Resolution, newest *appsv1.ControllerRevision, stored []*appsv1.ControllerRevision,
) {
	of := func(r *appsv1.ControllerRevision) Revision { return Revision{Name: r.Name, Data: r.Data.Raw} }
	in.Update, in.Current, in.Revisions = of(newest), of(cmp.Or(r.Current, newest)), nil
	for _, s := range stored {
		in.Revisions = append(in.Revisions, of(s))
	}
}

func (p *Pass) stored(writes []*write.Write) []*Write {
	all := make([]*Write, len(writes))
	for k, w := range writes {
		all[k] = &Write{Write: *w, Action: ActionStore, Revision: p.in.Update.Name}
	}
	return all
}

// trim returns the writes that delete revisions beyond the limit.
func (p *Pass) trim() []*Write {
	if p.in.Store == nil {
		return nil
	}
	var writes []*Write
	for _, w := range p.Trim(p.in.Store.Stored(p.in.Stored), p.in.HistoryLimit) {
		writes = append(writes, &Write{Write: *w, Action: ActionTrim})
	}
	return writes
}

// Promote returns the current revision after the pass, and reports whether it is another one than current, the one of
// the status: see revision.Promote.
func (p *Pass) Promote(current string) (name string, promoted bool) {
	replicas, counts := p.in.Scale.Limits.Replicas, p.Counts()
	if p.in.Scale.Slots != nil {
		replicas = int32(len(p.in.Scale.Slots))
	}
	return revision.Promote(revision.Progress{
		Current: current, Update: p.in.Update.Name,
		Replicas: replicas * max(int32(len(p.in.Members)), 1), Existing: counts.Pods, Updated: counts.UpdatedPods,
	})
}

// Trim returns the writes that delete old revisions, so that at most limit are stored besides those that pods have and
// those that the pass goes from and to. Pods are as the last answers left them.
func (p *Pass) Trim(stored []*appsv1.ControllerRevision, limit int32) []*write.Write {
	live := []string{p.in.Update.Name, p.in.Current.Name}
	for _, pod := range p.Pods() {
		live = append(live, pod.Labels[p.in.revisionLabel()], p.in.revisionOf(pod))
	}
	for k := range p.in.Instances {
		for _, pod := range p.in.Instances[k].Pods {
			if pod.Pod != nil && !p.isMember(pod) {
				live = append(live, pod.Labels[p.in.revisionLabel()])
			}
		}
	}
	return write.Deletions(revision.Trim(stored, live, limit))
}

// Template returns a copy of the pod template of a creation, in the revision and the role that it gets.
func (in *Input) Template(c Creation) (*corev1.PodTemplateSpec, error) {
	r := in.revision(c.Revision)
	if r == nil {
		return nil, fmt.Errorf("the revision %q is not stored", c.Revision)
	}
	decoded := newChanges(in)
	return decoded.template(r, c.Member.Role)
}

// Pod returns the pod of a creation: the template of its revision and its role, with the revision label, the labels and
// the reference of the owner, and the readiness gate that updates in place need. The pod has the name of its slot;
// without slots the API server generates a name. With Group.Label, the pods of a group have the labels of their group
// and their member. The leader then has the name of the group, another pod the name of the group and of the member, so
// that a creation that is sent twice never makes two pods.
func (in *Input) Pod(c Creation) (*corev1.Pod, error) {
	template, err := in.Template(c)
	if err != nil {
		return nil, err
	}
	pod := NewPod(template, in.Owner, c.Slot)
	if in.Group.Label != "" {
		group := cmp.Or(c.Instance, c.Slot)
		if pod.Name, pod.GenerateName = group, ""; c.Member.Name != in.Members[0].Name {
			pod.Name += "-" + c.Member.Name
		}
		pod.Labels[in.Group.Label], pod.Labels[in.Group.MemberLabel] = group, c.Member.Name
	}
	pod.Labels[in.revisionLabel()] = in.revision(c.Revision).label()
	if in.Strategy != Recreate {
		inplace.EnsureReadinessGate(&pod.Spec, in.Policy.Keys)
	}
	return pod, nil
}

// NewPod returns a pod of a template, with the labels and the reference of its owner, and shares no memory with the
// template. The API server generates the name of a pod without one. Input.Pod adds the revision and the readiness gate.
func NewPod(template *corev1.PodTemplateSpec, owner Owner, name string) *corev1.Pod {
	template = template.DeepCopy()
	pod := &corev1.Pod{Spec: template.Spec, ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.Namespace, Name: name, Annotations: template.Annotations, Finalizers: template.Finalizers,
		Labels: labels.Merge(template.Labels, owner.Labels),
	}}
	if name == "" {
		pod.GenerateName = owner.Reference.Name + "-"
	}
	if owner.Reference.UID != "" {
		pod.OwnerReferences = []metav1.OwnerReference{owner.Reference}
	}
	return pod
}

// build returns the objects of some creations.
func (in *Input) build(creations []Creation) (all [][]write.Object, err error) {
	if in.Build != nil {
		return in.Build(creations)
	}
	if in.Owner.Reference.UID == "" {
		return nil, errors.New("create pods: Input.Build and Input.Owner are missing")
	}
	for _, c := range creations {
		pod, err := in.Pod(c)
		if err != nil {
			return nil, err
		}
		all = append(all, []write.Object{pod})
	}
	return all, nil
}
