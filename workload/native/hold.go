package native

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Hold returns the operations that pause a Deployment in the write that changes its template from before to after: its
// controller then makes no ReplicaSet. The Deployment or its namespace asks for a rollout in place. Hold returns nil
// where nothing is to be held, and where the user has paused the Deployment.
func Hold(before, after *appsv1.Deployment) []write.Op {
	value, held := after.Annotations[HoldKey]
	changed := !apiequality.Semantic.DeepEqual(&before.Spec.Template, &after.Spec.Template)
	if after.Spec.Paused || after.Annotations[RolloutKey] == Disabled || !held && !changed {
		return nil
	}
	if _, ok := before.Annotations[HoldKey]; !held || !ok {
		value = strconv.FormatInt(before.Generation, 10) // differs from that of each earlier hold
	}
	return append(write.SetAnnotations(after, map[string]*string{HoldKey: &value}), write.Add("/spec/paused", true))
}

// Writes returns what follows the pass, one write after the other: each is for nothing where one before it fails. Pods
// are as the answers to the pass left them. All pods run the change: another ReplicaSet keeps the old template, and the
// active one gets that of the Deployment. The hold ends when the built-in controller has observed that, which the next
// plans show, or at once where nothing is updated in place. Before the first update the template of the active
// ReplicaSet is marked.
func (p *DeploymentPlan) Writes(pass *workload.Pass) []*write.Write {
	switch {
	case p.active == nil:
		return p.release(p.ends)
	case p.marks:
		return []*write.Write{p.exchange(p.active, marked(&p.active.Spec.Template), nil)}
	}
	counts, replicas := pass.Counts(), replicasOf(p.deployment.Spec.Replicas)
	if p.err != nil || counts.Pods != replicas || replicasOf(p.active.Spec.Replicas) != replicas ||
		counts.UpdatedAvailable != replicas || pass.Err() != nil {
		return p.release(false)
	}
	if p.isSame(p.active, p.deployment.Spec.Template) {
		return p.release(p.isObserved())
	}
	return append(p.history(), p.exchange(p.active, &p.deployment.Spec.Template, map[string]*string{HoldKey: nil}))
}

// IsSettled reports whether nothing follows the pass: the Deployment is not held, and the ReplicaSet that has its pods
// has its template.
func (p *DeploymentPlan) IsSettled() bool {
	switch {
	case p.IsHeld():
		return false
	case p.active == nil:
		return replicasOf(p.deployment.Spec.Replicas) == 0
	}
	return p.isSame(p.active, p.deployment.Spec.Template)
}

// isObserved reports whether the built-in controller takes the active ReplicaSet for that of the template: it then has
// copied the annotations of the Deployment. Before, it would make another ReplicaSet as soon as the hold ends.
func (p *DeploymentPlan) isObserved() bool {
	value, ok := p.active.Annotations[HoldKey]
	return ok && value == p.deployment.Annotations[HoldKey]
}

// IsUnobserved reports whether the hold waits for the built-in controller to take the ReplicaSet for that of the
// template. That takes a moment. It never comes where the templates differ in fields that this build does not know:
// Release the plan then.
func (p *DeploymentPlan) IsUnobserved() bool {
	return p.IsHeld() && p.active != nil && p.isSame(p.active, p.deployment.Spec.Template) && !p.isObserved()
}

// release returns the write that ends the hold. It takes a hold away that a user has ended by spec.paused, too.
func (p *DeploymentPlan) release(ends bool) []*write.Write {
	d := p.deployment
	_, ok := d.Annotations[HoldKey]
	if !ok || !ends && d.Spec.Paused {
		return nil
	}
	ops := append(write.TestUID(d), write.TestAnnotation(d, HoldKey), write.Test("/metadata/generation", d.Generation))
	ops = append(ops, write.SetAnnotations(d, map[string]*string{HoldKey: nil})...)
	return []*write.Write{write.JSON(d, write.Main, append(ops, write.Add("/spec/paused", false))...)}
}

// history returns the writes after which exactly one other ReplicaSet has the template that the active one is about to
// lose, and no other one the template that it is about to get: of two with equal templates, the built-in controller
// takes the older one. Templates that come back in turn change places, and make no heap of ReplicaSets.
func (p *DeploymentPlan) history() (writes []*write.Write) {
	old := unmarked(&p.active.Spec.Template)
	kept := apiequality.Semantic.DeepEqual(old, withoutHash(&p.deployment.Spec.Template)) // it was taken back
	var free []*appsv1.ReplicaSet
	for _, set := range p.sets {
		switch {
		case set == p.active || set.DeletionTimestamp != nil:
		case p.isSame(set, p.deployment.Spec.Template):
			free = append(free, set)
		case p.isSame(set, *old):
			kept = true
		}
	}
	if !kept && len(free) > 0 {
		writes = append(writes, p.exchange(free[0], old, p.annotations()))
		free = free[1:]
	} else if !kept {
		writes = append(writes, &write.Write{Verb: write.Create, Object: p.keep(old)})
	}
	for _, set := range free {
		writes = append(writes, &write.Write{Verb: write.Delete, Object: set, SameVersion: true})
	}
	return writes
}

// exchange returns the write of a template of a ReplicaSet, which keeps its selector. It patches what differs alone, so
// that fields that this build does not know stay.
func (*DeploymentPlan) exchange(
	set *appsv1.ReplicaSet, template *corev1.PodTemplateSpec, annotations map[string]*string,
) *write.Write {
	template = template.DeepCopy()
	metav1.SetMetaDataLabel(&template.ObjectMeta, hashKey, set.Spec.Selector.MatchLabels[hashKey])
	ops := append(write.TestUID(set), write.Test("/metadata/resourceVersion", set.ResourceVersion))
	ops = append(ops, write.SetAnnotations(set, annotations)...)
	return write.JSON(set, write.Main, append(ops, difference("/spec/template", &set.Spec.Template, template)...)...)
}

// annotations are those of the active ReplicaSet, as of its revision and the cause of its change. The built-in
// controller has copied them from the Deployment, and kubectl rollout undo copies them back: RolloutKey, too, without
// which the undo would not be in place.
func (p *DeploymentPlan) annotations() map[string]*string {
	all := map[string]*string{}
	for key, value := range p.active.Annotations {
		if key != HoldKey {
			all[key] = &value
		}
	}
	return all
}

// keep returns the ReplicaSet without pods that keeps the old template of the active one.
func (p *DeploymentPlan) keep(old *corev1.PodTemplateSpec) *appsv1.ReplicaSet {
	d, set := p.deployment, p.active
	taken := map[string]bool{}
	for _, other := range p.sets {
		taken[other.Name] = true
	}
	data, _ := revision.Encode(old) // an empty one has a hash, too
	hash := revision.Hash(data, nil)
	for n := int32(0); taken[d.Name+"-"+hash]; n++ {
		hash = revision.Hash(data, &n)
	}
	annotations := maps.Clone(set.Annotations)
	delete(annotations, HoldKey)
	template := *old.DeepCopy()
	metav1.SetMetaDataLabel(&template.ObjectMeta, hashKey, hash)
	selector := metav1.AddLabelToSelector(d.Spec.Selector.DeepCopy(), hashKey, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: template.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind(string(KindDeployment))),
			},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(0)), MinReadySeconds: set.Spec.MinReadySeconds, Selector: selector, Template: template,
		},
	}
}

const hashKey = appsv1.DefaultDeploymentUniqueLabelKey

// withoutHash returns a copy of a template without the label by which the pods of ReplicaSets differ.
func withoutHash(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	template = template.DeepCopy()
	delete(template.Labels, hashKey)
	return template
}

// marked returns a copy of a template that equals none of a user. While pods of a ReplicaSet run another template than
// that of the ReplicaSet, the user may take the change back: the built-in controller then must not take the ReplicaSet
// for the one of the template, and count all of its pods as updated.
func marked(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	template = template.DeepCopy()
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, HoldKey, "true")
	return template
}

func isMarked(set *appsv1.ReplicaSet) bool {
	_, ok := set.Spec.Template.Annotations[HoldKey]
	return ok
}

// unmarked returns a copy of the template of a ReplicaSet as its user wrote it.
func unmarked(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	template = withoutHash(template)
	if delete(template.Annotations, HoldKey); len(template.Annotations) == 0 {
		template.Annotations = nil
	}
	return template
}

// isSame compares templates as the built-in controller does.
func (*DeploymentPlan) isSame(set *appsv1.ReplicaSet, template corev1.PodTemplateSpec) bool {
	return apiequality.Semantic.DeepEqual(withoutHash(&set.Spec.Template), withoutHash(&template))
}

func replicasOf(replicas *int32) int32 { return ptr.Deref(replicas, 1) }

// maxUnavailableOf is that of the strategy of a Deployment. Recreate has all pods down at a time.
func maxUnavailableOf(d *appsv1.Deployment) *intstr.IntOrString {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return ptr.To(intstr.FromString("100%"))
	}
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		return rolling.MaxUnavailable
	}
	return ptr.To(intstr.FromString("25%"))
}

// difference returns the operations that make a value at a path another one. What both have in common is not written,
// nor is what their types do not know.
func difference(path string, from, to any) []write.Op {
	return differ(path, plain(from), plain(to))
}

func plain(value any) (decoded any) {
	if data, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(data, &decoded) // it is JSON
	}
	return decoded
}

func differ(path string, from, to any) (ops []write.Op) {
	before, wasList := children(from)
	after, isList := children(to)
	switch {
	case reflect.DeepEqual(from, to):
		return nil
	case before == nil, after == nil, wasList != isList, isList && len(before) != len(after),
		before["name"] != after["name"]: // another container
		return []write.Op{write.Replace(path, to)}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[key]; !ok {
			ops = append(ops, write.Remove(path+write.Pointer(key)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if old, ok := before[key]; ok {
			ops = append(ops, differ(path+write.Pointer(key), old, after[key])...)
		} else {
			ops = append(ops, write.Add(path+write.Pointer(key), after[key]))
		}
	}
	return ops
}

// children returns the fields of an object, or the elements of a list by their index; nil for neither.
func children(value any) (all map[string]any, list bool) {
	elements, list := value.([]any)
	if !list {
		all, _ = value.(map[string]any)
		return all, false
	}
	all = map[string]any{}
	for k, element := range elements {
		all[strconv.Itoa(k)] = element
	}
	return all, true
}
