package cloneset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Where no webhook has looked, a spec may say what cannot be. A set with such a spec is left as it is, says why in a condition
// and an event, and is looked at again when it changes.

// misfit says why a template cannot be used: its pods would not be the set's, which would give them up and make others,
// for ever.
func (a *act) misfit(name string, template *corev1.PodTemplateSpec) error {
	pod := a.newPod(birth{revision: name}, template)
	if a.selector.Matches(labels.Set(pod.Labels)) {
		return nil
	}
	return fmt.Errorf("spec.selector does not match the labels of pods of the template (revision %s)", name)
}

// refuse is all that is done with a set whose pods nobody can tell.
func (r *Reconciler) refuse(ctx context.Context, s *snapshot) error {
	a := &act{Reconciler: r, snapshot: s, plan: &plan{}}
	if err := a.giveUp(ctx, s.unfit); err != nil {
		return err
	}
	return reconcile.TerminalError(s.unfit)
}

// giveUp reports why a pass ends before anything is known of the pods.
func (a *act) giveUp(ctx context.Context, why error) error {
	status := a.set.Status.DeepCopy()
	status.ObservedGeneration = a.set.Generation
	a.failed(status, v1beta1.CloneSetConditionFailedScale, why)
	return a.writeStatus(ctx, status)
}

// outcome is the error of a pass. What only another spec can mend is not tried again.
func (a *act) outcome(errs ...error) error {
	err := errors.Join(errs...)
	if err != nil && a.unfit != nil {
		return reconcile.TerminalError(err)
	}
	return err
}

// tellUnfit tells what of the spec cannot be used, when the status has not said so before.
func (a *act) tellUnfit() {
	tell := func(t v1beta1.CloneSetConditionType, err error) {
		if err == nil {
			return
		}
		if old := conditionOf(&a.set.Status, t); old == nil || !strings.Contains(old.Message, err.Error()) {
			a.tell(corev1.EventTypeWarning, reasonInvalidSpec, "%v", err)
		}
	}
	tell(v1beta1.CloneSetConditionFailedScale, a.unfit)
	tell(v1beta1.CloneSetConditionFailedUpdate, a.plan.unread)
}
