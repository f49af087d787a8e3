package cloneset

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/write"
)

// Mutate answers with the defaults that the object lacks.
func (w *Webhooks) Mutate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	v, err := versionOf(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	object, err := decodeContent(req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	defaults, err := v.defaults(req.Object.Raw)
	if err != nil {
		// The schema comes after this webhook and names the fields of a wrong type; what it does not describe, the webhook
		// that validates refuses.
		return admission.Allowed("")
	}
	patch := podtemplate.Fill("", object, defaults)
	more, unknown, err := w.templateDefaults(ctx, req, object)
	if err != nil {
		return review.Undecided(err)
	}
	answer := review.Patched(append(patch, more...))
	answer.Warnings = review.Unknown(unknown)
	return answer
}

// defaults returns what Default sets in the object.
func (v version) defaults(raw []byte) (map[string]any, error) {
	if v == old {
		set := &appsv1alpha1.CloneSet{}
		return defaultsOf(raw, set, func() {
			set.Spec.Template, set.Spec.VolumeClaimTemplates = corev1.PodTemplateSpec{}, nil
		})
	}
	set := &appsv1beta1.CloneSet{}
	return defaultsOf(raw, set, func() {
		set.Spec.Template, set.Spec.VolumeClaimTemplates = corev1.PodTemplateSpec{}, nil
	})
}

// defaultsOf decodes raw into set and compares what Default makes of it. The templates, which Default leaves alone, are
// dropped: most of an object is template.
func defaultsOf(raw []byte, set interface{ Default() }, dropTemplates func()) (map[string]any, error) {
	if err := review.Unmarshal(raw, set); err != nil {
		return nil, err
	}
	dropTemplates()
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return nil, err
	}
	set.Default()
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return nil, err
	}
	return difference(before, after), nil
}

// difference is what after has other than before; Default adds and removes nothing.
func difference(before, after map[string]any) map[string]any {
	only := map[string]any{}
	for key, value := range after {
		b, had := before[key]
		was, wasObject := b.(map[string]any)
		is, isObject := value.(map[string]any)
		switch {
		case !had:
			only[key] = value
		case wasObject && isObject:
			if below := difference(was, is); len(below) > 0 {
				only[key] = below
			}
		case !reflect.DeepEqual(b, value):
			only[key] = value
		}
	}
	return only
}

// templateDefaults fills the templates of the object, when the pod template is new or has changed. A template that is
// wrong gets no defaults: it is for the validation to say so, with all else that is wrong. One that is right is not judged
// again, so that the paths of fields in it that are unknown are reported here.
func (w *Webhooks) templateDefaults(ctx context.Context, req admission.Request, object content) (patch []write.Op, unknown []string, err error) {
	template, stored := object.template(), storedTemplate(req)
	if w.options.TemplateNoDefaults || template == nil || reflect.DeepEqual(stored, template) {
		return nil, nil, nil
	}
	prepared := podtemplate.Prepare(template, podtemplate.Defaults{PullAlways: true, HostPorts: w.options.HostNetworkHostPorts})
	verdict, err := podtemplate.Check(ctx, w.api, podtemplate.Template{
		Namespace:   req.Namespace,
		Content:     prepared,
		Path:        field.NewPath("spec", "template"),
		Claims:      object.claimNames(),
		ClaimsPath:  field.NewPath("spec", "volumeClaimTemplates"),
		TellUnknown: true,
		Timeout:     w.options.Timeout,
	})
	if err != nil || len(verdict.Faults) > 0 {
		return nil, nil, err
	}
	const at = "/spec/template"
	patch = append(podtemplate.Fill(at, template, prepared), podtemplate.Refill(at, template, verdict.Defaulted, stored)...)
	for i, claim := range object.claims() {
		if c, ok := claim.(map[string]any); ok {
			patch = append(patch, podtemplate.Fill(fmt.Sprintf("/spec/volumeClaimTemplates/%d", i), c, claimDefaults())...)
		}
	}
	if key, err := ticketFor(req.Namespace, template, object.claimNames()); err == nil {
		w.passed.issue(key)
	}
	return patch, verdict.Unknown, nil
}

// claimDefaults are those that the reference gives a claim template. The API server's own, as the mode of the volume, are
// left to the claims that are made of it: with more in it, a template would differ from those in existing revisions.
func claimDefaults() map[string]any {
	return map[string]any{"status": map[string]any{"phase": string(corev1.ClaimPending)}}
}

// storedTemplate is nil where nothing is stored, or nothing that can be read.
func storedTemplate(req admission.Request) map[string]any {
	if req.Operation != admissionv1.Update {
		return nil
	}
	stored, err := decodeContent(req.OldObject.Raw)
	if err != nil {
		return nil
	}
	return stored.template()
}
