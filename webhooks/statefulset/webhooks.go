package statefulset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/templated"
	"github.com/kruisekit/kruisekit/internal/validation"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-statefulset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-statefulset"
)

// API is what the webhooks ask of the API server; client.Client has it.
type API = templated.API

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// ExpandClaims defaults and validates volumeClaimUpdateStrategy, for a reconciler that expands claims.
	ExpandClaims bool
	// TemplateNoDefaults leaves pod and claim templates as they were written.
	TemplateNoDefaults bool
	// HostNetworkHostPorts also sets the host ports in templates of pods in the host's network. It has no effect with
	// TemplateNoDefaults.
	HostNetworkHostPorts bool
	// Delete reviews deletions at ValidatePath, as webhooks/deletion does. Nil allows them.
	Delete func(context.Context, admission.Request) admission.Response
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhooks answer admission requests for StatefulSets.
type Webhooks struct {
	*templated.Webhooks[*appsv1beta1.StatefulSet]
}

// New makes the webhooks.
func New(api API, o Options) (*Webhooks, error) {
	kind := templated.Kind[*appsv1beta1.StatefulSet]{
		Name:     "StatefulSet",
		Hub:      func() *appsv1beta1.StatefulSet { return &appsv1beta1.StatefulSet{} },
		Old:      func() templated.Spoke[*appsv1beta1.StatefulSet] { return &appsv1alpha1.StatefulSet{} },
		Validate: validation.StatefulSet, ValidateUpdate: validation.StatefulSetUpdate,
		Ignores:    ignores,
		Incomplete: func(map[string]any) bool { return true },
	}
	if o.ExpandClaims {
		kind.Default, kind.Lookup = setDefaults, lookup{api}.faults
	}
	w, err := templated.New(api, kind, templated.Options{
		TemplateNoDefaults: o.TemplateNoDefaults, HostNetworkHostPorts: o.HostNetworkHostPorts, Delete: o.Delete, Timeout: o.Timeout,
	})
	if err != nil {
		return nil, err
	}
	return &Webhooks{w}, nil
}

// ignores reports whether a fault has a safe reading, and is none for the reference: nothing below zero counts as zero, and an unknown strategy
// of claims as OnDelete.
func ignores(_ review.Version, fault *field.Error) bool {
	switch fault.Field {
	case "spec.ordinals.start", "spec.revisionHistoryLimit", "spec.volumeClaimUpdateStrategy.type",
		"spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.gracePeriodSeconds":
		return true
	}
	return false
}

// SetupWithManager serves the webhooks on the manager's webhook server.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	return w.Register(mgr, MutatePath, ValidatePath)
}

// setDefaults also defaults what has a meaning only where claims are expanded.
func setDefaults(object templated.Object) {
	object.Default()
	if set, is := object.(*appsv1beta1.StatefulSet); is && set.Spec.VolumeClaimUpdateStrategy.Type == "" {
		set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
	}
}
