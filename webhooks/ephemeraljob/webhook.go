package ephemeraljob

import (
	"context"
	"errors"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-v1alpha1-ephemeraljob"

// API is what the webhook asks of the API server; client.Client has it.
type API = podtemplate.API

// Options of the webhook. The zero value has all defaults.
type Options struct {
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhook answers admission requests for EphemeralJobs.
type Webhook struct {
	api     API
	options Options
}

// New returns a webhook.
func New(api API, o Options) (*Webhook, error) {
	if api == nil {
		return nil, errors.New("ephemeraljob: a client is needed")
	}
	return &Webhook{api, o}, nil
}

// SetupWithManager serves the webhook on the manager's webhook server.
func (w *Webhook) SetupWithManager(mgr ctrl.Manager) error {
	return review.Serve(mgr, map[string]admission.HandlerFunc{Path: w.Validate})
}

// Validate rejects an invalid job, with every fault.
func (w *Webhook) Validate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) || review.IsDeleting(req) {
		return admission.Allowed("")
	}
	if answer := review.Oversized(req, "template"); answer != nil {
		return *answer
	}
	if v, err := review.VersionOf(req, "ephemeraljobs"); err != nil || v != review.Old {
		return review.BadRequest(errors.Join(err, errors.New("EphemeralJobs have the version v1alpha1")))
	}
	now, before := &v1alpha1.EphemeralJob{}, &v1alpha1.EphemeralJob{}
	if err := review.Unmarshal(req.Object.Raw, now); err != nil {
		return review.BadRequest(err)
	}
	faults := validation.EphemeralJob(now)
	if req.Operation == admissionv1.Create {
		if len(faults) > 0 {
			return review.Judged(kind(), req.Name, faults, nil)
		}
		return w.ask(ctx, req, now)
	}
	if err := review.Unmarshal(req.OldObject.Raw, before); err != nil {
		return review.BadRequest(err)
	}
	added, borne := review.Added(faults, validation.EphemeralJob(before))
	return review.Judged(kind(), req.Name, append(added, validation.EphemeralJobUpdate(now, before)...), borne)
}

// ask has the API server validate the containers of a new job.
func (w *Webhook) ask(ctx context.Context, req admission.Request, job *v1alpha1.EphemeralJob) admission.Response {
	content, err := review.Decode(req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	verdict, err := podtemplate.Check(ctx, w.api, podtemplate.Template{
		Namespace: req.Namespace, Content: template(content, job), Path: field.NewPath("spec", "template"), TellUnknown: true, Timeout: w.options.Timeout,
	})
	if err != nil {
		return review.Undecided(err)
	}
	faults := make(field.ErrorList, 0, len(verdict.Faults))
	for _, fault := range verdict.Faults {
		moved := *fault
		moved.Field = pathOf(fault.Field)
		faults = append(faults, &moved)
	}
	unknown := make([]string, 0, len(verdict.Unknown))
	for _, path := range verdict.Unknown {
		unknown = append(unknown, pathOf(path))
	}
	answer := review.Judged(kind(), req.Name, faults, nil)
	answer.Warnings = review.Unknown(unknown)
	return answer
}

func kind() schema.GroupKind { return v1alpha1.GroupVersion.WithKind("EphemeralJob").GroupKind() }
