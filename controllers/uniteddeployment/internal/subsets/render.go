package subsets

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
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
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return nil, fmt.Errorf("encode pod template: %w", err)
	}
	return content, nil
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
	below, is := object[key].(map[string]any)
	if !is {
		below = map[string]any{}
		object[key] = below
	}
	return below
}
