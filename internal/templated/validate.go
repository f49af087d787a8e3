package templated

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
)

// Validate rejects an invalid object, with every fault.
func (w *Webhooks[T]) Validate(ctx context.Context, req admission.Request) admission.Response {
	switch {
	case req.SubResource != "":
		return admission.Allowed("")
	case req.Operation == admissionv1.Delete:
		return w.reviewDelete(ctx, req)
	case !review.Concerns(req):
		return admission.Allowed("")
	}
	if answer := review.Oversized(req, bounded()...); answer != nil {
		return *answer
	}
	v, err := w.kind.versionOf(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	r := reviewed[T]{Change: Change[T]{Version: v, Namespace: req.Namespace, IsUpdate: req.Operation == admissionv1.Update}}
	now, err := w.kind.read(v, req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	r.now, r.Now = now, now.hub
	if r.IsUpdate {
		if r.before, err = w.kind.read(v, req.OldObject.Raw); err != nil {
			return review.BadRequest(err)
		}
		r.Before = r.before.hub
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	return w.decide(ctx, r)
}

// reviewDelete passes a deletion on. Without options every deletion is allowed.
func (w *Webhooks[T]) reviewDelete(ctx context.Context, req admission.Request) admission.Response {
	if _, err := w.kind.versionOf(req); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if w.options.Delete == nil {
		return admission.Allowed("")
	}
	return w.options.Delete(ctx, req)
}

// reviewed is a change, with the objects as they were sent.
type reviewed[T Object] struct {
	Change[T]

	now, before object[T]
}

// object is an object as it was sent, and what it means.
type object[T Object] struct {
	content
	hub T
	// lost are faults that the hub does not show.
	lost field.ErrorList
}

func (k *Kind[T]) read(v review.Version, raw []byte) (object[T], error) {
	c, err := k.content(raw)
	if err != nil {
		return object[T]{}, err
	}
	o := object[T]{content: c, hub: k.Hub()}
	if v == review.Hub || k.Old == nil {
		return o, review.Unmarshal(raw, o.hub)
	}
	old := k.Old()
	if err := review.Unmarshal(raw, old); err != nil {
		return object[T]{}, err
	}
	if k.Lost != nil {
		o.lost = k.Lost(old)
	}
	return o, old.ConvertTo(o.hub)
}

// decide answers with all faults.
func (w *Webhooks[T]) decide(ctx context.Context, r reviewed[T]) admission.Response {
	faults, tolerated := w.faults(r)
	if w.kind.Lookup != nil {
		more, err := w.kind.Lookup(ctx, r.Change)
		if err != nil {
			return review.Undecided(err)
		}
		faults = append(faults, w.kind.translated(r.Version, more)...)
	}
	template, err := w.templateVerdict(ctx, r)
	if err != nil && len(faults) == 0 {
		return review.Undecided(err)
	}
	faults = append(faults, foundBefore(template.Faults, faults)...)
	answer := review.Judged(w.kind.groupKind(), r.Now.GetName(), faults, tolerated)
	answer.Warnings = append(answer.Warnings, warnings(template)...)
	return answer
}

// warnings are those of a template.
func warnings(template podtemplate.Verdict) []string {
	return append(review.Unknown(template.Unknown), review.Missing(template.Missing)...)
}

// faults of the object by itself, and of the change. Those that the stored object has too, and those that the version of the request has
// never looked at, are tolerated.
func (w *Webhooks[T]) faults(r reviewed[T]) (faults, tolerated field.ErrorList) {
	all := append(slices.Clone(r.now.lost), w.kind.Validate(r.Now)...)
	var had field.ErrorList
	if r.IsUpdate {
		had = append(slices.Clone(r.before.lost), w.kind.Validate(r.Before)...)
	}
	faults, tolerated = review.Added(all, had)
	faults = slices.DeleteFunc(faults, func(fault *field.Error) bool {
		ignored := w.kind.ignores(r.Version, fault)
		if ignored {
			tolerated = append(tolerated, fault)
		}
		return ignored
	})
	if r.IsUpdate && w.kind.ValidateUpdate != nil {
		faults = append(faults, w.kind.ValidateUpdate(r.Now, r.Before)...)
	}
	return w.kind.translated(r.Version, faults), w.kind.translated(r.Version, tolerated)
}

// templateVerdict asks the API server about a template that is new, or has changed, or its claims have.
func (w *Webhooks[T]) templateVerdict(ctx context.Context, r reviewed[T]) (podtemplate.Verdict, error) {
	if len(r.now.template) == 0 {
		return podtemplate.Verdict{}, nil
	}
	template, claims := r.now.podTemplate(), r.now.claimNames()
	if r.IsUpdate && reflect.DeepEqual(r.before.podTemplate(), template) && slices.Equal(r.before.claimNames(), claims) {
		return podtemplate.Verdict{}, nil
	}
	key, err := ticketFor(r.Namespace, template, claims)
	if err == nil && w.passed.redeem(key) {
		return podtemplate.Verdict{}, nil
	}
	return podtemplate.Check(ctx, w.api, w.check(r.Namespace, template, r.now.content))
}
