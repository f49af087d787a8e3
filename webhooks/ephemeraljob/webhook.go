package ephemeraljob

import (
	"context"
	"errors"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/validation"
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
	server := mgr.GetWebhookServer()
	if server == nil {
		return errors.New("the manager has no webhook server")
	}
	server.Register(Path, &admission.Webhook{Handler: admission.HandlerFunc(w.Validate)})
	return nil
}

// Validate rejects an invalid job, with every fault.
func (w *Webhook) Validate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) || review.IsDeleting(req) {
		return admission.Allowed("")
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
			return answer(req.Name, faults, nil, nil)
		}
		return w.ask(ctx, req, now)
	}
	if err := review.Unmarshal(req.OldObject.Raw, before); err != nil {
		return review.BadRequest(err)
	}
	added, borne := review.Added(faults, validation.EphemeralJob(before))
	return answer(req.Name, append(added, validation.EphemeralJobUpdate(now, before)...), borne, nil)
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
	return answer(req.Name, faults, nil, review.Unknown(unknown))
}

// answer rejects a job with new faults, and warns of those that the stored one has.
func answer(name string, faults, borne field.ErrorList, warnings []string) admission.Response {
	a := admission.Allowed("")
	if len(faults) > 0 {
		a = review.Invalid(v1alpha1.GroupVersion.WithKind("EphemeralJob").GroupKind(), name, faults)
	}
	a.Warnings = warnings
	for _, fault := range borne {
		a.Warnings = append(a.Warnings, fault.Error())
	}
	return a
}
