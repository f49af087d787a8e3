package persistentpodstate

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-persistentpodstate"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Namespace of the ConfigMap kruise-configuration. Default kruise-system.
	Namespace string
}

// change is what is done to a PersistentPodState, under review, and rules return what is invalid in an object.
type (
	change = kinds.Change[*v1beta1.PersistentPodState]
	rules  = func(*v1beta1.PersistentPodState) field.ErrorList
)

// New returns the webhook of PersistentPodStates. It reads live through the client.
func New(api kinds.API, o Options) (kinds.Webhooks, error) {
	namespace := cmp.Or(o.Namespace, kruise.DefaultNamespace)
	return kinds.New(api, kinds.Row[*v1beta1.PersistentPodState]{
		Kind: podstates.Kind(),
		Hub:  &v1beta1.PersistentPodState{}, Old: &v1alpha1.PersistentPodState{},
		ValidatePath: Path, AdmitDeleting: true, Code: http.StatusBadRequest,
		Rules: func(ctx context.Context, api kinds.API, c change) (rules, error) {
			listed, err := whiteList(ctx, api, namespace, c.Now)
			return func(s *podstate.State) field.ErrorList { return podstate.Validate(s, listed...) }, err
		},
		ValidateUpdate: podstate.ValidateUpdate, Lookup: conflict,
	}, kinds.Options{})
}

// whiteList returns the kinds of the white list, where the target is no StatefulSet.
func whiteList(ctx context.Context, api kinds.API, namespace string, s *podstate.State) ([]schema.GroupKind, error) {
	target, ok := podstate.TargetOf(s)
	if !ok || target.Group == "" || target.Kind == "" || slices.Contains(podstate.Targets(), target.GroupKind) {
		return nil, nil
	}
	all, err := podstates.WhiteList(ctx, api, namespace)
	listed := make([]schema.GroupKind, 0, len(all))
	for _, gvk := range all {
		listed = append(listed, gvk.GroupKind())
	}
	return listed, err
}

// conflict returns an error where another object of the namespace has the target of a new object.
func conflict(ctx context.Context, api kinds.API, c change) (found kinds.Finding, err error) {
	if c.IsUpdate {
		return found, nil
	}
	all, err := stored.List(ctx, api, podstates.Kind(), client.InNamespace(c.Namespace))
	for _, raw := range all {
		if other := stored.Whole[podstate.State](raw); other != nil && podstate.Conflicts(c.Now, other) {
			found.Faults = field.ErrorList{field.Invalid(field.NewPath("spec", "targetRef"), c.Now.Spec.TargetReference,
				"must not be the target of PersistentPodState "+other.Name+", too")}
			break
		}
	}
	return found, err
}
