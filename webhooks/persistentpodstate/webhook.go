package persistentpodstate

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	at := client.ObjectKey{Namespace: cmp.Or(o.Namespace, kruise.DefaultNamespace), Name: kruise.ConfigurationName}
	return kinds.New(api, kinds.Row[*v1beta1.PersistentPodState]{
		Kind: v1beta1.GroupVersion.WithKind("PersistentPodState"),
		Hub:  &v1beta1.PersistentPodState{}, Old: &v1alpha1.PersistentPodState{},
		ValidatePath: Path, AdmitDeleting: true, Code: http.StatusBadRequest,
		Rules: func(ctx context.Context, api kinds.API, c change) (rules, error) {
			listed, err := whiteList(ctx, api, at, c.Now)
			return func(s *podstate.State) field.ErrorList { return podstate.Validate(s, listed...) }, err
		},
		ValidateUpdate: podstate.ValidateUpdate, Lookup: conflict,
	}, kinds.Options{})
}

// whiteList returns the kinds of the white list, where the target is no StatefulSet.
func whiteList(ctx context.Context, api kinds.API, at client.ObjectKey, s *podstate.State) ([]schema.GroupKind, error) {
	target, is := podstate.TargetOf(s)
	if !is || target.Group == "" || target.Kind == "" || slices.Contains(podstate.Targets(), target.GroupKind()) {
		return nil, nil
	}
	config := &corev1.ConfigMap{}
	err := api.Get(ctx, at, config)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", at, err)
	}
	all, err := podstates.WhiteList(config)
	if err != nil {
		return nil, err
	}
	listed := make([]schema.GroupKind, 0, len(all))
	for _, gvk := range all {
		listed = append(listed, gvk.GroupKind())
	}
	return listed, nil
}

// conflict returns a fault where another object of the namespace has the target of a new object.
func conflict(ctx context.Context, api kinds.API, c change) (found kinds.Finding, err error) {
	if c.IsUpdate {
		return found, nil
	}
	all, err := stored.List(ctx, api, podstates.Kind(), client.InNamespace(c.Namespace))
	if err != nil {
		return found, err
	}
	var others []podstate.State
	for _, raw := range all {
		if other := stored.Whole[podstate.State](raw); other != nil {
			others = append(others, *other)
		}
	}
	if fault := podstate.Conflict(c.Now, others); fault != nil {
		found.Faults = field.ErrorList{fault}
	}
	return found, nil
}
