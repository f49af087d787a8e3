package migrate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// takeOver lets a target take the pods of a source over.
//
// A StatefulSet names its pods, so that the source creates none besides those that the target adopts: the target has
// all pods before the source is deleted. A ReplicaSet would replace each pod that it loses: the Deployment is deleted
// while its ReplicaSet still replaces pods, then the ReplicaSet, and the pods change their owner at once.
func (m migration) takeOver(from, to schema.GroupKind) error {
	o, err := m.observe(from, to)
	if err != nil {
		return err
	}
	if o.source == nil && !o.Freed {
		m.report("%s/%s has migrated to %s before", from.Kind, m.flags.source, o.target)
		return nil
	}
	dryRun := m.Text("dry-run")
	if dryRun != "none" {
		o.printFates()
	}
	if err := o.refused(); err != nil {
		return fmt.Errorf("nothing is deleted: %w", err)
	}
	if dryRun == "client" {
		return nil
	}
	if err := o.prepare(); err != nil || dryRun != "none" {
		return err
	}
	if from.Kind == kinds.StatefulSet {
		if err := m.until("adopt pods", o.adopt); err != nil {
			return o.failed(err)
		}
	}
	if err := o.complete(); err != nil {
		return o.failed(err)
	}
	m.report("The way back: %s\nSuccessfully migrated %d replicas from %s/%s to %s in place", o.wayBack(), o.owned,
		from.Kind, m.flags.source, o.target)
	return nil
}

// prepare creates the target, waits until its controller knows it, and rehearses what follows.
func (o *observation) prepare() error {
	if o.target == nil {
		answer, err := o.Create(o.want)
		if err != nil {
			return err
		}
		if o.target, err = kinds.Read[Workload](answer); err != nil {
			return err
		}
		o.aim()
		if o.Text("dry-run") != "none" {
			return o.rehearse()
		}
		o.report("Created %s, which does nothing yet. The way back: %s", o.target, o.wayBack())
	}
	err := o.until("observe "+o.target.String(), func() (bool, error) {
		err := o.again()
		return err == nil && o.target != nil && o.Update != "" &&
			o.target.Status.ObservedGeneration >= o.target.Generation, err
	})
	if err == nil && !o.Freed {
		err = o.rehearse()
	}
	if err != nil {
		return o.failed(err)
	}
	return nil
}

// rehearse sends what follows as a dry run: rights, webhooks and policies refuse it before anything is deleted.
func (o *observation) rehearse() error {
	dryRun := []string{metav1.DryRunAll}
	for _, pod := range o.pods {
		if o.Fate(pod).Adopt {
			if err := o.patchPod(pod, dryRun); err != nil && !write.IsOutdated(err) {
				return err
			}
		}
	}
	for _, w := range append([]*Workload{o.source}, o.sets...) {
		if err := o.orphan(w, dryRun); err != nil {
			return err
		}
	}
	return nil
}

// complete deletes the source, adopts the pods that the target does not have yet, and lets the target act.
func (o *observation) complete() error {
	if !o.Freed {
		after := *o
		after.Freed = true
		o.report("Deleting %s without its pods. The way back from now on: %s", o.source, after.wayBack())
	}
	if err := o.until("delete the source", o.deleteSource); err != nil {
		return err
	}
	o.flags.interval = min(o.flags.interval, 100*time.Millisecond) // no controller replaces pods now
	late := o.until("delete ReplicaSets", o.deleteSets)
	if late == nil || wait.Interrupted(late) {
		late = o.until("count the pods of "+o.target.String(), o.adopt)
	}
	if late != nil && !wait.Interrupted(late) {
		return late
	}
	if err := o.finish(); err != nil { // also where it is late: the target must replace pods
		return err
	}
	return late
}

// deleteSource deletes the source as it was checked, and reports whether it is gone.
func (o *observation) deleteSource() (bool, error) {
	if err := o.again(); err != nil || o.source == nil {
		return err == nil, err
	}
	if o.source.DeletionTimestamp != nil {
		return false, nil
	}
	if err := o.refused(); err != nil {
		return false, err
	}
	err := o.orphan(o.source, nil)
	if apierrors.IsConflict(err) { // it has changed: check again
		return false, nil
	}
	return false, err
}

// deleteSets deletes the ReplicaSets that the Deployment has left, and reports whether their controller knows: it would
// replace the pods that it loses.
func (o *observation) deleteSets() (bool, error) {
	if err := o.again(); err != nil {
		return false, err
	}
	done := true
	for _, set := range o.sets {
		owner := metav1.GetControllerOf(set)
		switch {
		case set.DeletionTimestamp != nil:
			done = done && set.Status.ObservedGeneration >= set.Generation
		case owner != nil: // the garbage collector has not freed it, or another Deployment has it
			done = done && owner.Name != o.flags.source
		default:
			if err := o.orphan(set, nil); err != nil && !apierrors.IsConflict(err) {
				return false, err
			}
			done = false
		}
	}
	return done, nil
}

// adopt patches the pods that the target does not have, and reports whether the target counts all of its pods.
func (o *observation) adopt() (bool, error) {
	if err := o.again(); err != nil {
		return false, err
	}
	if o.target == nil {
		return false, fmt.Errorf("%s %q not found", o.to, o.flags.target)
	}
	done := true
	for _, pod := range o.pods {
		owned := metav1.IsControlledBy(pod, o.target)
		switch {
		case o.Fate(pod).Adopt:
			done = false
			if err := o.patchPod(pod, nil); err != nil && !write.IsOutdated(err) {
				return false, err
			}
		case pod.DeletionTimestamp != nil:
			done = done && (owned || o.Freed) // else the source may create it again
		case owned:
			o.owned++
		}
	}
	return done && int(o.target.Status.Replicas) >= o.owned, nil
}

// finish lets the target act as the source did.
func (o *observation) finish() error {
	to, err := o.Get(o.to, o.namespace, o.flags.target)
	if err != nil {
		return err
	}
	record, err := recorded(o.target)
	if err != nil {
		return err
	}
	ops := append(target.Unchanged(to.Unstructured), write.SetAnnotations(to, map[string]*string{fromKey: nil})...)
	if o.to.Kind == kinds.CloneSet {
		ops = append(ops, write.Remove("/spec/scaleStrategy/maxUnavailable"))
	}
	if kinds.Paused(to.Unstructured) {
		at := kinds.PausePath(to.GroupVersionKind())
		ops = append(ops, target.Set(to.Unstructured, kinds.Paused(record), at...)...)
	}
	const retention = "persistentVolumeClaimRetentionPolicy"
	if policy, ok, _ := unstructured.NestedMap(record.Object, "spec", retention); ok {
		ops = append(ops, write.Add(write.Pointer("spec", retention), policy))
	}
	_, err = o.Patch(to, ops, "")
	return err
}

// patchPod makes a pod one of the target.
func (o *observation) patchPod(pod *corev1.Pod, dryRun []string) error {
	labels := map[string]*string{}
	if o.to.Kind == kinds.CloneSet {
		labels[kruise.CloneSetInstanceIDKey] = ptr.To(rand.String(5))
		labels[kruise.LifecycleStateKey] = ptr.To(string(kruise.LifecycleStateNormal))
	}
	data, err := write.Encode(o.Adopt(pod, labels))
	if err != nil {
		return err
	}
	client, err := o.client(schema.GroupKind{Kind: "Pod"})
	if err != nil {
		return err
	}
	_, err = client.Patch(o.Context(), pod.Name, types.JSONPatchType, data, metav1.PatchOptions{DryRun: dryRun})
	if err != nil {
		return fmt.Errorf("patch pod %s: %w", pod.Name, err)
	}
	return nil
}

// orphan deletes a workload as it was read, and leaves what it controls.
func (o *observation) orphan(w *Workload, dryRun []string) error {
	client, err := o.client(w.GroupVersionKind().GroupKind())
	if err != nil {
		return err
	}
	as := &metav1.Preconditions{UID: &w.UID}
	if len(dryRun) == 0 {
		as.ResourceVersion = &w.ResourceVersion
	}
	err = client.Delete(o.Context(), w.Name, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan), Preconditions: as, DryRun: dryRun,
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", w, err)
	}
	return nil
}
