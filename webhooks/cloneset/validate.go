package cloneset

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/validation"
)

// Validate rejects an invalid object, with every fault.
func (w *Webhooks) Validate(ctx context.Context, req admission.Request) admission.Response {
	create, update := req.Operation == admissionv1.Create, req.Operation == admissionv1.Update
	switch {
	case req.SubResource != "":
		return admission.Allowed("")
	case req.Operation == admissionv1.Delete:
		return w.judgeDelete(ctx, req)
	case !create && !update:
		return admission.Allowed("")
	}
	v, err := versionOf(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	r := change{version: v, namespace: req.Namespace}
	if r.now, err = v.read(req.Object.Raw); err != nil {
		return review.BadRequest(err)
	}
	if update {
		before, err := v.read(req.OldObject.Raw)
		if err != nil {
			return review.BadRequest(err)
		}
		r.before = &before
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	return w.judge(ctx, r)
}

// change is what is done to a CloneSet, under review.
type change struct {
	version   version
	namespace string
	now       object
	// before is nil when the object is new.
	before *object
}

// object is a CloneSet as it was sent, and what it means.
type object struct {
	content content
	set     *appsv1beta1.CloneSet
	// lost are faults that set does not show.
	lost field.ErrorList
}

func (v version) read(raw []byte) (object, error) {
	c, err := decodeContent(raw)
	if err != nil {
		return object{}, err
	}
	set, lost, err := v.decode(raw)
	return object{content: c, set: set, lost: lost}, err
}

// judge answers with all faults.
func (w *Webhooks) judge(ctx context.Context, r change) admission.Response {
	faults, tolerated := r.faults()
	pods, err := w.podFaults(ctx, r)
	if err != nil {
		return review.Undecided(err)
	}
	faults = append(faults, r.version.translated(pods)...)
	template, err := w.templateVerdict(ctx, r)
	if err != nil && len(faults) == 0 {
		return review.Undecided(err)
	}
	faults = append(faults, without(template.Faults, faults)...)
	answer := admission.Allowed("")
	if len(faults) > 0 {
		answer = review.Invalid(appsv1beta1.GroupVersion.WithKind("CloneSet").GroupKind(), r.now.set.Name, faults)
	}
	for _, fault := range tolerated {
		answer.Warnings = append(answer.Warnings, fault.Error())
	}
	answer.Warnings = append(answer.Warnings, review.Unknown(template.Unknown)...)
	return answer
}

// faults of the object by itself, and of the change. Those that the stored object has too, and those that the version of
// the request has never looked at, are tolerated.
func (r change) faults() (faults, tolerated field.ErrorList) {
	all := append(slices.Clone(r.now.lost), validation.CloneSet(r.now.set)...)
	var had field.ErrorList
	if r.before != nil {
		had = append(slices.Clone(r.before.lost), validation.CloneSet(r.before.set)...)
	}
	faults, tolerated = review.Added(all, had)
	faults = slices.DeleteFunc(faults, func(fault *field.Error) bool {
		ignored := r.version.ignores(fault)
		if ignored {
			tolerated = append(tolerated, fault)
		}
		return ignored
	})
	if r.before != nil {
		faults = append(faults, validation.CloneSetUpdate(r.now.set, r.before.set)...)
	}
	return r.version.translated(faults), r.version.translated(tolerated)
}

// templateVerdict asks the API server about a template that is new, or has changed, or its claims have.
func (w *Webhooks) templateVerdict(ctx context.Context, r change) (podtemplate.Verdict, error) {
	template, claims := r.now.content.template(), r.now.content.claimNames()
	if b := r.before; b != nil && reflect.DeepEqual(b.content.template(), template) && slices.Equal(b.content.claimNames(), claims) {
		return podtemplate.Verdict{}, nil
	}
	key, err := ticketFor(r.namespace, template, claims)
	if err == nil && w.passed.redeem(key) {
		return podtemplate.Verdict{}, nil
	}
	return podtemplate.Check(ctx, w.api, podtemplate.Template{
		Namespace:   r.namespace,
		Content:     template,
		Path:        field.NewPath("spec", "template"),
		Claims:      claims,
		ClaimsPath:  field.NewPath("spec", "volumeClaimTemplates"),
		TellUnknown: true,
		Timeout:     w.options.Timeout,
	})
}

// without leaves out faults that were found already.
func without(faults, found field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(faults, func(f *field.Error) bool {
		return slices.ContainsFunc(found, func(g *field.Error) bool { return f.Field == g.Field && f.Type == g.Type })
	})
}
