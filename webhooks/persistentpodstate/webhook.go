package persistentpodstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-persistentpodstate"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Namespace of the ConfigMap kruise-configuration. Default kruise-system.
	Namespace string
}

// Webhook answers admission requests for PersistentPodStates.
type Webhook struct {
	api     client.Reader
	options Options
}

// New returns a webhook. It reads live through the client.
func New(api client.Reader, o Options) (*Webhook, error) {
	if api == nil {
		return nil, errors.New("persistentpodstate: a client is needed")
	}
	o.Namespace = cmp.Or(o.Namespace, kruise.DefaultNamespace)
	return &Webhook{api: api, options: o}, nil
}

// SetupWithManager serves the webhook on the manager's webhook server.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{Path: w.Validate})
}

// Validate rejects an invalid object, with every fault.
func (w *Webhook) Validate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) || review.IsDeleting(req) {
		return admission.Allowed("")
	}
	version, err := review.VersionOf(req, "persistentpodstates")
	if err != nil {
		return review.BadRequest(err)
	}
	now, err := read(version, req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	kinds, err := w.kinds(ctx, now)
	if err != nil {
		return review.Undecided(err)
	}
	faults := validation.PersistentPodState(now, kinds...)
	if req.Operation == admissionv1.Create {
		conflict, err := w.conflict(ctx, req.Namespace, now)
		if err != nil {
			return review.Undecided(err)
		}
		if conflict != nil {
			faults = append(faults, conflict)
		}
		return review.JudgedBadRequest(faults, nil)
	}
	before, err := read(version, req.OldObject.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	added, borne := review.Added(faults, validation.PersistentPodState(before, kinds...))
	return review.JudgedBadRequest(append(added, validation.PersistentPodStateUpdate(now, before)...), borne)
}

// kinds returns the kinds of the white list, where the target is no StatefulSet.
func (w *Webhook) kinds(ctx context.Context, s *podstate.State) ([]schema.GroupKind, error) {
	target, is := podstate.TargetOf(s)
	if !is || target.Group == "" || target.Kind == "" || slices.Contains(podstate.Targets(), target.GroupKind()) {
		return nil, nil
	}
	config := &corev1.ConfigMap{}
	err := w.api.Get(ctx, client.ObjectKey{Namespace: w.options.Namespace, Name: kruise.ConfigurationName}, config)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", w.options.Namespace, kruise.ConfigurationName, err)
	}
	all, err := podstates.WhiteList(config)
	if err != nil {
		return nil, err
	}
	kinds := make([]schema.GroupKind, 0, len(all))
	for _, gvk := range all {
		kinds = append(kinds, gvk.GroupKind())
	}
	return kinds, nil
}

// conflict returns a fault where another object of the namespace has the same target.
func (w *Webhook) conflict(ctx context.Context, namespace string, s *podstate.State) (*field.Error, error) {
	all, err := stored.List(ctx, w.api, podstates.Kind(), client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	var others []podstate.State
	for _, raw := range all {
		if other := stored.Whole[podstate.State](raw); other != nil {
			others = append(others, *other)
		}
	}
	return validation.PersistentPodStateConflict(s, others), nil
}

// read decodes an object as v1beta1.
func read(version review.Version, raw []byte) (*v1beta1.PersistentPodState, error) {
	return review.ReadHub(version, raw, &v1beta1.PersistentPodState{}, &v1alpha1.PersistentPodState{})
}
