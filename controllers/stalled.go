package controllers

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/internal/metrics"
)

// followed are the reconcilers whose objects have metrics about standing still, with what their statuses lack.
func followed() map[string]metrics.StalledOptions {
	return map[string]metrics.StalledOptions{
		"broadcastjob":     {NoGenerations: true},
		"cloneset":         {},
		"daemonset":        {},
		"sidecarset":       {NoCondition: true},
		"statefulset":      {},
		"uniteddeployment": {},
	}
}

// setUp registers a reconciler, and what follows its objects for the metrics.
func (e entry) setUp(ctx context.Context, mgr ctrl.Manager, r reconciler, o *Options) error {
	var c controller.Options
	if o.Controller != nil {
		c = o.Controller(e.name)
	}
	if err := r.SetupWithManager(ctx, mgr, c); err != nil {
		return err
	}
	follow, ok := followed()[e.name]
	if !ok || o.Registerer == nil {
		return nil
	}
	stalled, err := metrics.RegisterStalled(o.Registerer)
	if err != nil {
		return err
	}
	if err := mgr.Add(stalled.Follow(mgr.GetCache(), e.kind, follow)); err != nil {
		return fmt.Errorf("follow %s: %w", e.kind.Kind, err)
	}
	return nil
}
