package kinds

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

// validate rejects an invalid object, with every fault.
func (w *webhooks[T]) validate(ctx context.Context, req admission.Request) admission.Response {
	if req.SubResource == "" && req.Operation == admissionv1.Delete {
		return w.reviewDelete(ctx, req)
	}
	if !review.Concerns(req) {
		return admission.Allowed("")
	}
	r, answer := w.open(req)
	if answer != nil {
		return *answer
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	return w.decide(ctx, r)
}

// reviewDelete passes a deletion on. Without options every deletion is allowed.
func (w *webhooks[T]) reviewDelete(ctx context.Context, req admission.Request) admission.Response {
	if _, err := w.row.versionOf(req); err != nil {
		return review.BadRequest(err)
	}
	if w.options.Delete == nil {
		return admission.Allowed("")
	}
	return w.options.Delete(ctx, req)
}

// decide answers with all faults.
func (w *webhooks[T]) decide(ctx context.Context, r reviewed[T]) admission.Response {
	if faults := w.fixed(r.Change); len(faults) > 0 {
		return review.Rejected(http.StatusForbidden, faults)
	}
	rules := w.row.Validate
	if w.row.Rules != nil {
		var err error
		if rules, err = w.row.Rules(ctx, w.api, r.Change); err != nil {
			return review.Undecided(err)
		}
	}
	faults, tolerated := w.faults(r, rules)
	found, err := w.lookup(ctx, r.Change, faults)
	if err != nil {
		return review.Undecided(err)
	}
	faults = append(faults, foundBefore(w.row.translated(r.Old, found.Faults), faults)...)
	template, err := w.templateVerdict(ctx, r)
	if err != nil && len(faults) == 0 {
		return review.Undecided(err)
	}
	faults = append(faults, foundBefore(template.Faults, faults)...)
	answer := w.judged(r.Now.GetName(), faults)
	answer.Warnings = found.Warnings
	answer = review.Warned(answer, tolerated)
	answer.Warnings = append(answer.Warnings, warnings(template)...)
	return answer
}

// fixed returns the faults of an update of what cannot change.
func (w *webhooks[T]) fixed(c Change[T]) field.ErrorList {
	if !c.IsUpdate || w.row.Fixed == nil {
		return nil
	}
	return w.row.Fixed(c)
}

// lookup returns what needs more than the objects, and the warnings of the object.
func (w *webhooks[T]) lookup(ctx context.Context, c Change[T], faults field.ErrorList) (found Finding, err error) {
	if w.row.Lookup != nil {
		c.Faults = faults
		if found, err = w.row.Lookup(ctx, w.api, c); err != nil {
			return found, err
		}
	}
	if w.row.Warn != nil {
		found.Warnings = append(found.Warnings, w.row.Warn(c.Now)...)
	}
	return found, nil
}

// judged rejects an object with faults, and admits an object without faults.
func (w *webhooks[T]) judged(name string, faults field.ErrorList) admission.Response {
	switch {
	case len(faults) == 0:
		return admission.Allowed("")
	case w.row.Code == http.StatusBadRequest:
		return review.Rejected(http.StatusBadRequest, faults)
	}
	return review.Invalid(w.row.Kind.GroupKind(), name, faults)
}

// warnings are those of a template.
func warnings(template podtemplate.Verdict) []string {
	return slices.Concat(review.Unknown(template.Unknown), review.Newer(template.Newer, "recreates pods"),
		review.Missing(template.Missing))
}

// faults of the object by itself, and of the change. Those that the stored object has too, and those that the row
// ignores, are tolerated.
func (w *webhooks[T]) faults(r reviewed[T], rules func(T) field.ErrorList) (faults, tolerated field.ErrorList) {
	all := w.row.faultsOf(r.now, rules)
	var had field.ErrorList
	if r.IsUpdate {
		had = w.row.faultsOf(r.before, rules)
	}
	faults, tolerated = review.Added(all, had)
	faults = slices.DeleteFunc(faults, func(fault *field.Error) bool {
		ignored := w.row.Ignores != nil && w.row.Ignores(r.Old, fault)
		if ignored {
			tolerated = append(tolerated, fault)
		}
		return ignored
	})
	if r.IsUpdate && w.row.ValidateUpdate != nil {
		faults = append(faults, w.row.ValidateUpdate(r.Now, r.Before)...)
	}
	return w.row.translated(r.Old, faults), w.row.translated(r.Old, tolerated)
}

// faultsOf returns what is invalid in an object.
func (r *Row[T]) faultsOf(o object[T], rules func(T) field.ErrorList) (faults field.ErrorList) {
	if rules != nil {
		faults = rules(o.hub)
	}
	if o.old != nil && r.Older != nil {
		faults = r.Older(o.old, faults)
	}
	return faults
}

// templateVerdict asks the API server about a template that is new, or has changed, or its claims have.
func (w *webhooks[T]) templateVerdict(ctx context.Context, r reviewed[T]) (podtemplate.Verdict, error) {
	if len(r.now.template) == 0 {
		return podtemplate.Verdict{}, nil
	}
	template, claims := r.now.podTemplate(), r.now.claimNames()
	if r.IsUpdate && reflect.DeepEqual(r.before.podTemplate(), template) && slices.Equal(r.before.claimNames(), claims) {
		return podtemplate.Verdict{}, nil
	}
	check := w.check(r.Namespace, template, r.now.content)
	check.TellUnknown = true
	return podtemplate.Check(ctx, w.api, check)
}
