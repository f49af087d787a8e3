package podscope

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/write"
)

// write updates the computed entries, and removes the provisional entries that have ended.
func (r *Reconciler) write(ctx context.Context, have *admissionregistrationv1.MutatingWebhookConfiguration, want []entry) (ctrl.Result, error) {
	logger := log.FromContext(ctx)
	over, _ := r.provisional.over(r.options.Off, r.options.Now())
	p, err := makePlan(have, want, over...)
	if err != nil {
		return ctrl.Result{}, err
	}
	undone := r.pace.undone(p.wanted)
	if len(p.added) > 0 && r.options.URL == "" {
		ca, err := r.authority(ctx, have)
		if err != nil {
			return ctrl.Result{}, err
		}
		if len(ca) == 0 {
			logger.Info("Pods are not sent yet: there is no CA for the service in any configuration", "service", r.options.Service)
			return ctrl.Result{RequeueAfter: awaitCA}, nil
		}
		p.trust(ca)
	}
	written, err := r.patch(ctx, have, p)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !written:
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}
	now := r.options.Now()
	r.pace.wrote(p.wanted, now)
	r.provisional.covered(now)
	logger.Info("Wrote which pods are sent", "configuration", have.Name, "entries", len(p.recorded), "undone", undone)
	if undone && r.options.Recorder != nil {
		r.options.Recorder.Event(have, corev1.EventTypeWarning, reasonUndone,
			"somebody else has taken away entries of the pod webhook; they are written again, after pauses that get longer")
	}
	_, next := r.provisional.over(r.options.Off, now)
	return ctrl.Result{RequeueAfter: next}, nil
}

// sweep removes the provisional entries that have ended.
func (r *Reconciler) sweep(ctx context.Context, have *admissionregistrationv1.MutatingWebhookConfiguration, want []entry, over []string) (ctrl.Result, error) {
	p, err := makePlan(have, want, over...)
	if err != nil {
		return ctrl.Result{}, err
	}
	word := r.provisional.sweep(over)
	written, err := r.patch(ctx, have, p)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !written:
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}
	now := r.options.Now()
	r.sweeps.wrote(word, now)
	log.FromContext(ctx).Info("Removed provisional entries", "configuration", have.Name, "entries", len(over))
	_, next := r.provisional.over(r.options.Off, now)
	return ctrl.Result{RequeueAfter: next}, nil
}

// patch writes. It returns false where the configuration has changed or is gone.
func (r *Reconciler) patch(ctx context.Context, have *admissionregistrationv1.MutatingWebhookConfiguration, p plan) (bool, error) {
	patch, err := write.Encode(p.patch)
	if err != nil {
		return false, err
	}
	target := &admissionregistrationv1.MutatingWebhookConfiguration{}
	target.Name = have.Name
	switch err := r.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch)); {
	case apierrors.IsNotFound(err), outdated(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write configuration: %w", err)
	}
	return true, nil
}

// outdated reports whether the configuration has changed since it was read. An invalid patch comes with causes.
func outdated(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsConflict(err) {
		return true
	}
	return apierrors.IsInvalid(err) && errors.As(err, &status) && (status.Status().Details == nil || len(status.Status().Details.Causes) == 0)
}
