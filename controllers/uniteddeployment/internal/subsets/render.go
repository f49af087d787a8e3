package subsets

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// Wanted is what the workload of a subset is to be.
type Wanted struct {
	Owner    *v1beta1.UnitedDeployment
	Subset   *v1beta1.Subset
	Name     string
	Revision string

	Replicas, Partition int32
	// MaxUnavailable replaces that of the template; nil for that of the template.
	MaxUnavailable *int32
}

// Render returns the workload of a subset, with the fields that the UnitedDeployment decides and no others.
func (t *Template) Render(w Wanted) (*unstructured.Unstructured, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	identity := map[string]string{
		kruise.ControllerRevisionHashLabelKey: w.Revision, kruise.SubSetNameLabelKey: w.Subset.Name,
	}
	pod, err := t.podTemplate(&w, identity)
	if err != nil {
		return nil, err
	}
	selector := w.Owner.Spec.Selector.DeepCopy()
	labels := merged(t.Metadata.Labels, selector.MatchLabels, identity)
	selector.MatchLabels = merged(selector.MatchLabels, map[string]string{kruise.SubSetNameLabelKey: w.Subset.Name})
	if spec["selector"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(selector); err != nil {
		return nil, fmt.Errorf("encode selector: %w", err)
	}
	spec["template"], spec["replicas"] = pod, int64(w.Replicas)
	t.setStrategy(spec, &w)
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(t.Kind)
	o.SetNamespace(w.Owner.Namespace)
	o.SetName(w.Name)
	o.SetLabels(labels)
	o.SetAnnotations(merged(t.Metadata.Annotations, map[string]string{
		v1beta1.AnnotationSubsetPatchKey: string(w.Subset.Patch.Raw),
	}))
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, OwnerKind())})
	return o, nil
}

func merged(all ...map[string]string) map[string]string {
	m := map[string]string{}
	for _, labels := range all {
		maps.Copy(m, labels)
	}
	return m
}

// podTemplate returns the template of the pods of a subset.
func (t *Template) podTemplate(w *Wanted, identity map[string]string) (map[string]any, error) {
	pod, err := subset.PlaceTemplate(t.Pod, subset.Placement{
		Term: w.Subset.NodeSelectorTerm, Tolerations: w.Subset.Tolerations, Patch: w.Subset.Patch.Raw,
	})
	if err != nil {
		return nil, err
	}
	pod.Labels = merged(pod.Labels, identity)
	return revision.WithUnknownFields(pod)
}

// setStrategy sets the partition, and how many pods may be unavailable.
func (t *Template) setStrategy(spec map[string]any, w *Wanted) {
	if t.Kind == deployment() {
		strategy := within(spec, "strategy")
		if w.MaxUnavailable != nil && strategy["type"] != string(appsv1.RecreateDeploymentStrategyType) {
			within(strategy, "rollingUpdate")["maxUnavailable"] = int64(*w.MaxUnavailable)
		}
		return
	}
	if onDelete(&unstructured.Unstructured{Object: map[string]any{"spec": spec}}) {
		return
	}
	strategy := within(spec, "updateStrategy")
	if t.Kind == statefulSet() {
		strategy["type"] = string(appsv1.RollingUpdateStatefulSetStrategyType)
	}
	rolling := within(strategy, "rollingUpdate")
	rolling["partition"] = int64(w.Partition)
	if w.MaxUnavailable != nil && t.Kind == cloneSet() {
		rolling["maxUnavailable"] = int64(*w.MaxUnavailable)
	}
}

// within returns the object at a key, which is made where there is none.
func within(object map[string]any, key string) map[string]any {
	below, ok := object[key].(map[string]any)
	if !ok {
		below = map[string]any{}
		object[key] = below
	}
	return below
}

// content is what a UnitedDeployment decides about a workload from pass to pass. All else in a workload follows from
// the template, and so changes with the revision.
type content struct {
	revision, patch                     string
	replicas, partition, maxUnavailable int32
}

func (c *Child) content() content {
	return content{
		c.Revision, c.Object.GetAnnotations()[v1beta1.AnnotationSubsetPatchKey], c.Replicas, c.Partition, c.MaxUnavailable(),
	}
}

// update returns the write that makes the workload of a subset the rendered one. Another revision or another patch
// replaces the spec; otherwise the numbers alone are written, and the fields of other writers stay. Labels and
// annotations are added.
func (t *Target) update(have, wanted content) (*write.Write, error) {
	content, err := stored.Content(t.Child.Object)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Child.Object.GetName(), err)
	}
	was := (&unstructured.Unstructured{Object: content}).DeepCopy()
	is := was.DeepCopy()
	is.SetLabels(merged(was.GetLabels(), t.Rendered.GetLabels()))
	is.SetAnnotations(merged(was.GetAnnotations(), t.Rendered.GetAnnotations()))
	if have.revision != wanted.revision || have.patch != wanted.patch {
		is.Object["spec"] = t.Rendered.Object["spec"]
	} else if err := t.setNumbers(is); err != nil {
		return nil, fmt.Errorf("change %s: %w", is.GetName(), err)
	}
	was.SetUID("") // so that the patch has the UID
	data, err := client.MergeFrom(was).Data(is)
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", is.GetName(), err)
	}
	return &write.Write{Verb: write.Patch, Object: is, Type: types.MergePatchType, Body: write.Bytes(data)}, nil
}

// setNumbers sets the replicas, the partition and how many pods may be unavailable as they are rendered.
func (t *Target) setNumbers(is *unstructured.Unstructured) error {
	strategy := t.Child.strategy()
	for _, path := range [][]string{
		{"spec", "replicas"},
		{"spec", strategy, "rollingUpdate", "partition"},
		{"spec", strategy, "rollingUpdate", "maxUnavailable"},
	} {
		value, found, err := unstructured.NestedFieldNoCopy(t.Rendered.Object, path...)
		if err != nil {
			return err
		}
		if !found {
			unstructured.RemoveNestedField(is.Object, path...)
		} else if err := unstructured.SetNestedField(is.Object, value, path...); err != nil {
			return err
		}
	}
	return nil
}
