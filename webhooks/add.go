package webhooks

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	"github.com/kruisekit/kruisekit/webhooks/podunavailablebudget"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
	"github.com/kruisekit/kruisekit/webhooks/workloadspread"
)

// entry is a webhook in the list.
type entry struct {
	name string
	add  func(b base) error
}

// base is what webhooks are made of.
type base struct {
	Options

	mgr  ctrl.Manager
	live client.Client
}

// webhook is what the constructors of webhooks return.
type webhook interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// coldManager is a manager whose readiness checks are wrapped.
type coldManager struct {
	ctrl.Manager

	wrap func(check healthz.Checker) healthz.Checker
}

// AddReadyzCheck adds the wrapped check.
func (m coldManager) AddReadyzCheck(name string, check healthz.Checker) error {
	return m.Manager.AddReadyzCheck(name, m.wrap(check)) //nolint:wrapcheck // the method of the manager itself
}

// serve serves what a constructor has returned.
func (b base) serve(w webhook, err error) error {
	if err != nil {
		return err
	}
	return w.SetupWithManager(b.mgr)
}

// live returns a client without a cache, which would start a watch of every kind that is read.
func live(mgr ctrl.Manager) (client.Client, error) {
	c, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

func addConversion(b base) error {
	b.mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	return nil
}

func addPod(b base) error {
	if b.NoPods {
		return nil
	}
	steps, err := pod.FromManager(b.mgr, b.Pod)
	if err != nil {
		return err
	}
	return b.serve(pod.New(steps, b.Pod))
}

func addDisruption(b base) error {
	if b.unguarded() && b.Disruption.Spreads == nil {
		return nil
	}
	return b.serve(disruption.New(b.Budgets, b.mgr.GetAPIReader(), b.Disruption))
}

func addBudget(b base) error {
	return b.serve(podunavailablebudget.New(b.Budgets, podunavailablebudget.Options{Off: b.unguarded()}))
}

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-pods-provisional-webhook-configuration,verbs=get;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kruise-mutating-webhook-configuration,verbs=get

func addSidecarSet(b base) error {
	switch {
	case b.SidecarSet.Cover != nil:
	case b.NoPods:
		b.SidecarSet.Cover = func(context.Context, *appsv1beta1.SidecarSet) error {
			return errors.New("the webhook of pods is off")
		}
	default:
		w, err := scope.NewWriter(b.live, scope.WriterOptions{Timeout: b.CoverTimeout, Reach: scope.Reach{
			Namespace: b.Pod.Sidecars.Namespace, Service: b.Reach.Service, URL: b.Reach.URL, CABundle: b.Reach.CABundle,
		}})
		if err != nil {
			return err
		}
		b.SidecarSet.Cover = w.Cover
	}
	return b.serve(sidecarset.New(b.live, b.mgr.GetCache(), b.SidecarSet))
}

func addWorkloadSpread(b base) error {
	return b.serve(workloadspread.New(b.Spreads, b.live, workloadspread.Options{Off: b.Spreads == nil}))
}
