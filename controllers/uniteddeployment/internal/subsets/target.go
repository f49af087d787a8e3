package subsets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/spread"
)

// Target is a subset with what it is to be.
type Target struct {
	Subset *v1beta1.Subset
	// Child is nil where there is no workload yet.
	Child *Child
	// Rendered is the workload as it is to be.
	Rendered *unstructured.Unstructured

	replicas, partition int32
	condition           spread.Condition
	reserved            spread.Reserved
	unschedulable       bool
	// err is why there is nothing rendered.
	err error
}

// current is how many replicas the workload has now.
func (t *Target) current() int32 {
	if t.Child == nil {
		return 0
	}
	return t.Child.Replicas
}

// render makes the workload of a subset.
func (s *Snapshot) render(p *Decision, t *Target) {
	w := Wanted{
		Owner: s.Object, Subset: t.Subset, Revision: p.Update, Replicas: t.replicas, Partition: t.partition,
		Name: Name(s.Object, t.Subset.Name), MaxUnavailable: t.allowance(p.Update),
	}
	if t.Child != nil {
		w.Name = t.Child.Object.GetName()
	}
	t.Rendered, t.err = s.Template.Render(w)
}

// allowance is how many pods of a subset may be unavailable during its update, where pods that find no node would
// otherwise take up the budget; nil for what the template says. It never falls during an update.
func (t *Target) allowance(update string) *int32 {
	c := t.Child
	if !t.reserved.Unschedulable || c == nil || c.Revision == update && c.Observed && c.Updated >= c.Pods-c.Partition {
		return nil
	}
	allowance := max(0, c.Replicas-c.Ready) + t.reserved.Overdue
	if c.Revision == update {
		allowance = max(allowance, c.MaxUnavailable())
	}
	return &allowance
}

// compare decides what is to be written for a subset.
func (s *Snapshot) compare(p *Decision, t *Target) {
	c := t.Child
	switch {
	case c != nil && c.Terminating, t.err != nil:
		return
	case c == nil:
		p.Creates = append(p.Creates, t)
		return
	}
	p.Evictions = append(p.Evictions, s.stuck(p, t)...)
	wanted, have := Observe(c.Kind, t.Rendered).content(), c.content()
	if s.Mode != spread.Reserving {
		wanted.maxUnavailable = have.maxUnavailable // that of the template is part of the revision
	}
	if have == wanted {
		return
	}
	w, err := t.update(have, wanted)
	if t.err = err; err == nil {
		p.Updates = append(p.Updates, w)
	}
}

// stuck are pods of a StatefulSet that are to be updated and are not ready: those of an ordered update would keep it
// from going on for ever.
func (s *Snapshot) stuck(p *Decision, t *Target) []*corev1.Pod {
	if !t.Child.Stuck() || t.Child.Revision != p.Update {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Pods[t.Subset.Name]), func(pod *corev1.Pod) bool {
		_, ordinal, ok := ordinals.Split(pod.Name)
		ready := lifecycle.ConditionOf(pod, corev1.PodReady)
		return !ok || ordinal < t.partition || ready != nil && ready.Status == corev1.ConditionTrue ||
			pod.DeletionTimestamp != nil ||
			pod.Labels[kruise.ControllerRevisionHashLabelKey] == p.Update
	})
}

// Encode returns the data of the revision of a template, as the reference stores it.
func Encode(t *v1beta1.SubsetTemplate) ([]byte, error) {
	data, err := json.Marshal(t)
	if err == nil && revision.HasUnknownFields(t) {
		var fields map[string]any
		if fields, err = revision.WithUnknownFields(t); err == nil {
			data, err = json.Marshal(fields)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	template := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &template); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	template["$patch"] = json.RawMessage(`"replace"`)
	data, err = json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	return data, nil
}

// SameData reports whether two revisions hold the same template. Encodings differ between releases, as in absent and
// empty fields, and OpenKruise up to 1.8 stored the template of a CloneSet in the shape of v1alpha1.
func SameData(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := decode(a)
	if err != nil {
		return false
	}
	y, err := decode(b)
	return err == nil && equality.Semantic.DeepEqual(x, y)
}

// decode reads a template, which keeps the fields that its types lack.
func decode(data []byte) (*v1beta1.SubsetTemplate, error) {
	template, err := decodeKnown(data)
	if err != nil {
		return nil, err
	}
	var values struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := utiljson.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("decode revision: %w", err)
	}
	return template, revision.KeepUnknownFields(template, values.Spec.Template)
}

// decodeKnown reads a template in the shape that it has, as conversion reads the template of an object.
func decodeKnown(data []byte) (*v1beta1.SubsetTemplate, error) {
	var old v1alpha1.UnitedDeployment
	if json.Unmarshal(data, &old) == nil {
		var hub v1beta1.UnitedDeployment
		if err := old.ConvertTo(&hub); err != nil {
			return nil, fmt.Errorf("convert revision: %w", err)
		}
		if hub.Annotations[v1alpha1.CloneSetTemplateShapeKey] != "" {
			return &hub.Spec.Template, nil
		}
	}
	var is v1beta1.UnitedDeployment
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, fmt.Errorf("decode revision: %w", err)
	}
	return &is.Spec.Template, nil
}
