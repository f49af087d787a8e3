package kinds

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/write"
)

// mutate answers with what the object lacks.
func (w *webhooks[T]) mutate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	if w.row.Admit != nil {
		return w.admit(ctx, req)
	}
	if answer := review.Oversized(req, bounded()...); answer != nil {
		return *answer
	}
	old, err := w.row.versionOf(req)
	if err != nil {
		return review.BadRequest(err)
	}
	sent, err := w.row.content(req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	if w.row.Complete != nil {
		return w.complete(ctx, req, old, sent)
	}
	var patch []write.Op
	if w.row.Arrange != nil {
		patch = w.row.Arrange(sent.object, Request{Old: old, IsUpdate: req.Operation == admissionv1.Update})
	}
	var into client.Object = copied(w.row.Hub)
	if old {
		into = copied(w.row.Old)
	}
	defaults, err := w.row.defaultsOf(sent.withoutTemplates(), into)
	if err != nil {
		// The schema comes after this webhook and names the fields of a wrong type; what it does not describe, the webhook
		// that validates rejects.
		return admission.Allowed("")
	}
	patch = append(patch, podtemplate.Fill("", sent.object, defaults)...)
	more, err := w.templateDefaults(ctx, req, sent)
	if err != nil {
		return review.Undecided(err)
	}
	return review.Patched(append(patch, more...))
}

// defaultsOf decodes an object into a typed one, and returns what Default changes.
func (r *Row[T]) defaultsOf(content map[string]any, into client.Object) (map[string]any, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if err := review.Unmarshal(raw, into); err != nil {
		return nil, err
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return nil, err
	}
	if r.Default != nil {
		r.Default(into)
	} else if own, ok := into.(interface{ Default() }); ok {
		own.Default()
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return nil, err
	}
	return difference(before, after), nil
}

// difference is what after has other than before; Default adds and removes nothing.
func difference(before, after map[string]any) map[string]any {
	only := map[string]any{}
	for key, value := range after {
		b, ok := before[key]
		was, wasObject := b.(map[string]any)
		is, isObject := value.(map[string]any)
		switch {
		case !ok:
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

// templateDefaults fills in the templates of the object, where the pod template is new or has changed. An invalid
// template gets no defaults: the validation rejects it, with all other faults.
func (w *webhooks[T]) templateDefaults(
	ctx context.Context, req admission.Request, sent content,
) (patch []write.Op, err error) {
	template, stored := sent.podTemplate(), w.row.stored(req)
	if w.options.TemplateNoDefaults || template == nil || w.row.Template.asWritten(sent.object) ||
		reflect.DeepEqual(stored, template) {
		return nil, nil
	}
	prepared := podtemplate.Prepare(template, podtemplate.Defaults{
		PullAlways: true, HostPorts: w.options.HostNetworkHostPorts,
	})
	verdict, err := podtemplate.Check(ctx, w.api, w.check(req.Namespace, prepared, sent))
	if err != nil || len(verdict.Faults) > 0 {
		return nil, err
	}
	at := pointer(sent.template)
	patch = podtemplate.Fill(at, template, prepared)
	patch = append(patch, podtemplate.Refill(at, template, verdict.Defaulted, stored)...)
	for i, claim := range sent.claimTemplates() {
		if c, ok := claim.(map[string]any); ok {
			patch = append(patch, podtemplate.Fill(pointer(sent.claims)+"/"+strconv.Itoa(i), c, claimDefaults())...)
		}
	}
	return patch, nil
}

// check is the question about a template of an object.
func (w *webhooks[T]) check(namespace string, template map[string]any, sent content) podtemplate.Template {
	return podtemplate.Template{
		Namespace: namespace, Content: template, Path: pathOf(sent.template),
		Claims: sent.claimNames(), ClaimsPath: pathOf(sent.claims), Timeout: w.options.Timeout,
		Incomplete: w.row.Template.incomplete(sent.object),
	}
}

// claimDefaults are those that the reference gives a claim template. The API server's own, as the mode of the volume,
// are left to the claims that are made of it: with more in it, a template would differ from those in existing
// revisions.
func claimDefaults() map[string]any {
	return map[string]any{"status": map[string]any{"phase": string(corev1.ClaimPending)}}
}
