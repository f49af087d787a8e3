package forecast

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// builtIn is the built-in controller of a StatefulSet or a DaemonSet as far as OnDelete goes: it stores the revision of
// the template, creates missing pods, and deletes those that are too many. The engine updates the pods in place.
// For a Deployment see rolling.
type builtIn struct {
	*simulation

	engine reconcile.Reconciler
}

// simulatedRevisionKey is the annotation of a DaemonSet or a Deployment in a simulation with the hash of its newest
// revision, which their status lacks.
const simulatedRevisionKey = "forecast.kruisekit.dev/revision"

// installed is what in-place updates of native sets find in the cluster: API servers resize pods since Kubernetes 1.33.
func installed(o Options) inplace.Installation {
	return ptr.Deref(o.Installed, inplace.Installation{Resize: true})
}

// Reconcile implements reconcile.Reconciler.
func (b *builtIn) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if err := b.server.Get(ctx, b.name, b.object); err != nil {
		return ctrl.Result{}, fmt.Errorf("get %s: %w", b.kind.name, err)
	}
	newest, err := b.revise(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch set := b.object.(type) {
	case *appsv1.StatefulSet:
		err = errors.Join(b.scale(ctx, set, newest), b.report(ctx, func() {
			set.Status.ObservedGeneration, set.Status.UpdateRevision = set.Generation, newest
		}))
	case *appsv1.DaemonSet:
		err = b.cover(ctx, set, revision.Short(newest))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return b.engine.Reconcile(ctx, request)
}

// report writes the status.
func (b *builtIn) report(ctx context.Context, change func()) error {
	before, ok := b.object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy %T: the copy is no object", b.object)
	}
	change()
	if err := b.server.Status().Patch(ctx, b.object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch the status of %s: %w", b.name, err)
	}
	return nil
}

// revisions lists those that are stored.
func (b *builtIn) revisions(ctx context.Context) ([]*appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	if err := b.server.List(ctx, &list, client.InNamespace(b.name.Namespace)); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return revision.ControlledBy[appsv1.ControllerRevision](b.object, list.Items), nil
}

// resolve finds the stored revision of a template, or the one to store.
func resolve(
	owner string, template *corev1.PodTemplateSpec, have []*appsv1.ControllerRevision,
) (revision.Resolution, []byte, error) {
	data, err := revision.Encode(template)
	if err != nil {
		return revision.Resolution{}, nil, fmt.Errorf("encode template: %w", err)
	}
	return revision.Resolve(revision.Input{Owner: owner, Data: data, Have: have}), data, nil
}

// revise stores the revision of the template, and returns its name.
func (b *builtIn) revise(ctx context.Context) (string, error) {
	have, err := b.revisions(ctx)
	if err != nil {
		return "", err
	}
	found, data, err := resolve(b.name.Name, b.kind.facts(b.object).template, have)
	if err != nil {
		return "", err
	}
	switch found.Verdict {
	case revision.Create:
		err = b.server.Create(ctx, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: b.name.Namespace, Name: found.Name, OwnerReferences: b.ownerReferences(),
				Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision.Short(found.Name)},
			},
			Data: runtime.RawExtension{Raw: data}, Revision: found.Number,
		})
	case revision.Bump:
		patch := fmt.Appendf(nil, `{"revision":%d}`, found.Number)
		err = b.server.Patch(ctx, found.Update, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		return "", fmt.Errorf("store revision: %w", err)
	}
	return found.Name, nil
}

func (b *builtIn) ownerReferences() []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(b.object, appsv1.SchemeGroupVersion.WithKind(b.kind.name))}
}

// create creates a pod of the template.
func (b *builtIn) create(ctx context.Context, name, hash string, change func(*corev1.Pod)) error {
	template := b.kind.facts(b.object).template
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.OwnerReferences = b.name.Namespace, name, b.ownerReferences()
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = hash
	if change != nil {
		change(pod)
	}
	if err := b.server.Create(ctx, pod); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	return nil
}

// scale creates the pods of a StatefulSet that are missing, and deletes those beyond the replicas.
func (b *builtIn) scale(ctx context.Context, set *appsv1.StatefulSet, newest string) error {
	pods, err := b.pods(ctx)
	if err != nil {
		return err
	}
	start := int32(0)
	if set.Spec.Ordinals != nil {
		start = set.Spec.Ordinals.Start
	}
	end := start + ptr.Deref(set.Spec.Replicas, 1)
	have := map[string]bool{}
	for _, pod := range pods {
		have[pod.Name] = true
		_, ordinal, _ := ordinals.Split(pod.Name)
		if pod.DeletionTimestamp != nil || ordinal >= start && ordinal < end {
			continue
		}
		if err := b.server.Delete(ctx, pod); err != nil {
			return fmt.Errorf("delete pod: %w", err)
		}
	}
	for ordinal := start; ordinal < end; ordinal++ {
		if name := ordinals.Name(set.Name, ordinal); !have[name] {
			if err := b.create(ctx, name, newest, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// cover creates the pods of a DaemonSet on nodes that lack theirs, and deletes those of nodes that are not eligible.
func (b *builtIn) cover(ctx context.Context, set *appsv1.DaemonSet, hash string) error {
	pods, err := b.pods(ctx)
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := b.server.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	on := map[string]*corev1.Pod{}
	for _, pod := range pods {
		on[pod.Spec.NodeName] = pod
	}
	rule, desired := eligible.Compile(&set.Spec.Template.Spec, eligible.Options{Daemon: true}), int32(0)
	for i := range nodes.Items {
		node, verdict := nodes.Items[i].Name, rule.Check(&nodes.Items[i])
		pod := on[node]
		switch {
		case verdict.Run && pod == nil:
			err = b.create(ctx, set.Name+"-"+node, hash, func(pod *corev1.Pod) { pod.Spec.NodeName = node })
		case !verdict.Stay && pod != nil && pod.DeletionTimestamp == nil:
			err = b.server.Delete(ctx, pod)
		}
		if err != nil {
			return fmt.Errorf("run on %s: %w", node, err)
		}
		if verdict.Run {
			desired++
		}
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, simulatedRevisionKey, hash)
	if err := b.server.Patch(ctx, set, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("note the revision: %w", err)
	}
	return b.report(ctx, func() {
		set.Status.ObservedGeneration, set.Status.DesiredNumberScheduled = set.Generation, desired
	})
}
