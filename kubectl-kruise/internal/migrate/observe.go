package migrate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// observation is what a migration in place finds. The objects hold all of its state.
type observation struct {
	migration
	Handover

	from, to schema.GroupKind
	// source is nil once it is deleted, and target before it is created.
	source, target *Workload
	// want is the target that the command makes of the source.
	want     *unstructured.Unstructured
	selector string
	sets     []*Workload
	pods     []*corev1.Pod
	// problem is why the source must not be deleted.
	problem error
	// owned is how many pods the target has.
	owned int
}

func (m migration) observe(from, to schema.GroupKind) (*observation, error) {
	o := &observation{migration: m, from: from, to: to}
	raw, err := m.read(from, m.flags.source, &o.source)
	if err == nil {
		_, err = m.read(to, m.flags.target, &o.target)
	}
	if err != nil {
		return nil, err
	}
	with := cmp.Or(o.source, o.target)
	if with == nil {
		return nil, fmt.Errorf("%s %q not found", from, m.flags.source)
	}
	selector, err := metav1.LabelSelectorAsSelector(with.Spec.Selector)
	if err != nil {
		return nil, err
	}
	o.selector = selector.String()
	if from.Kind == "Deployment" {
		if o.sets, err = list[Workload](m, builtIn("ReplicaSet"), o.selector); err != nil {
			return nil, err
		}
	}
	if o.pods, err = list[corev1.Pod](m, schema.GroupKind{Kind: "Pod"}, o.selector); err != nil {
		return nil, err
	}
	return o, o.judge(raw)
}

// judge decides who has the pods, and whether the source may be deleted.
func (o *observation) judge(raw *unstructured.Unstructured) error {
	o.Key = kruise.PodRevisionLabelKey
	if o.from.Kind == "Deployment" {
		o.Key = appsv1.DefaultDeploymentUniqueLabelKey
	}
	begun := false
	if o.target != nil {
		o.aim()
		begun = o.Begun(o.target.Annotations[fromKey], o.flags.source)
	}
	switch {
	case begun && (o.source == nil || o.source.DeletionTimestamp != nil):
		o.Freed = true
		return nil
	case o.source == nil:
		if record, err := recorded(o.target); err != nil || record.GetName() != o.flags.source {
			return fmt.Errorf("%s %q not found, and %s takes no pods over from it", o.from, o.flags.source, o.target)
		}
		return nil
	}
	if o.from.Kind == "Deployment" {
		holder, err := Holder(o.source, o.sets)
		o.problem = errors.Join(Settled(o.source), err)
		o.Revision, o.Holder = "", ""
		if holder != nil {
			o.Revision, o.Holder = holder.Labels[o.Key], holder.UID
		}
	} else if !begun { // else its status lacks the pods that the target has already
		o.problem, o.Revision, o.Holder = Settled(o.source), o.source.Status.UpdateRevision, o.source.UID
	}
	if err := o.build(raw); err != nil || o.target == nil {
		return err
	}
	want, err := kinds.Read[Workload](o.want)
	if err == nil {
		o.problem = errors.Join(o.problem, Made(o.target, want))
	}
	return err
}

// build makes the target of the source.
func (o *observation) build(raw *unstructured.Unstructured) error {
	mapping, err := o.Mapping(o.to)
	if err != nil {
		return err
	}
	if o.from.Kind == "Deployment" {
		var d *appsv1.Deployment
		if d, err = kinds.Read[appsv1.Deployment](raw); err == nil {
			o.want, err = kinds.WriteCloneSet(mapping.GroupVersionKind, Adopting(d, o.flags.target))
		}
	} else {
		var s *appsv1.StatefulSet
		if s, err = kinds.Read[appsv1.StatefulSet](raw); err == nil {
			o.want, err = kinds.WriteStatefulSet(mapping.GroupVersionKind, StatefulSetOf(s))
		}
	}
	if err != nil {
		return err
	}
	record, err := json.Marshal(map[string]any{
		"apiVersion": raw.GetAPIVersion(), "kind": raw.GetKind(), "metadata": metadata(o.source.ObjectMeta, o.source.Name),
		"spec": raw.Object["spec"],
	})
	annotations := metadata(o.source.ObjectMeta, "").Annotations
	annotations[fromKey], annotations[recordKey] = o.Marker(o.flags.source), string(record)
	o.want.SetAnnotations(annotations)
	return err
}

// recorded returns the manifest of the source that a target has.
func recorded(target *Workload) (*unstructured.Unstructured, error) {
	record := &unstructured.Unstructured{}
	if err := record.UnmarshalJSON([]byte(target.Annotations[recordKey])); err != nil {
		return nil, fmt.Errorf("read the annotation %s of %s: %w", recordKey, target, err)
	}
	return record, nil
}

// aim reads who gets the pods.
func (o *observation) aim() {
	o.Owner = *metav1.NewControllerRef(o.target, o.target.GroupVersionKind())
	o.Update = o.target.Status.UpdateRevision
}

// again looks again.
func (o *observation) again() error {
	now, err := o.observe(o.from, o.to)
	if err == nil {
		*o = *now
	}
	return err
}

// refused returns why the source must not be deleted.
func (o *observation) refused() error {
	if o.Freed {
		return nil
	}
	return errors.Join(o.problem, o.Refusals(o.pods))
}

// wayBack returns the commands of a shell that give the pods back to the source.
func (o *observation) wayBack() string {
	kubectl := func(words string, values ...any) string {
		return fmt.Sprintf("kubectl -n %s %s", o.namespace, fmt.Sprintf(words, values...))
	}
	to := fmt.Sprintf("%ss.%s/%s", strings.ToLower(o.to.Kind), o.to.Group, o.flags.target)
	orphan := kubectl("delete %s --cascade=orphan", to)
	label := kubectl("label pods -l '%s' %s=%s --overwrite", o.selector, o.Key, o.Revision)
	var steps []string
	switch {
	case o.Freed:
		const path = `{.metadata.annotations.kruisekit\.dev/migrated-from}`
		steps = []string{
			"source=$(" + kubectl("get %s -o jsonpath='%s'", to, path) + ")", orphan, label,
			`printf %s "$source" | kubectl create -f -`,
		}
	case o.from.Kind == kinds.StatefulSet: // its controller finds the pods as they were
		steps = []string{label, orphan}
	default:
		steps = []string{orphan}
	}
	return "\n  " + strings.Join(steps, " &&\n  ")
}

// failed adds to an error what to do.
func (o *observation) failed(err error) error {
	return fmt.Errorf("%w\nCall the command again to go on. The way back: %s", err, o.wayBack())
}

func (o *observation) printFates() {
	for _, pod := range o.pods {
		fate := o.Fate(pod)
		if fate.Refused != nil {
			fate.Text = "stops the migration"
		}
		fmt.Fprintf(o.Out, "pod/%s %s (dry run)\n", pod.Name, fate.Text)
	}
}

// read reads a workload, and leaves nil for one that does not exist.
func (m migration) read(k schema.GroupKind, name string, into **Workload) (*unstructured.Unstructured, error) {
	o, err := m.Get(k, m.namespace, name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, err
	}
	*into, err = kinds.Read[Workload](o.Unstructured)
	return o.Unstructured, err
}

// list reads the objects with labels.
func list[T any](m migration, k schema.GroupKind, selector string) ([]*T, error) {
	return kinds.ReadAll[T](m.List(k, m.namespace, metav1.ListOptions{LabelSelector: selector}))
}

// client returns the client of a kind in the namespace.
func (m migration) client(k schema.GroupKind) (dynamic.ResourceInterface, error) {
	mapping, err := m.Mapping(k)
	if err != nil {
		return nil, err
	}
	all, err := m.Factory.DynamicClient()
	if err != nil {
		return nil, err
	}
	return all.Resource(mapping.Resource).Namespace(m.namespace), nil
}
