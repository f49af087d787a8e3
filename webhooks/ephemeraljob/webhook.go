package ephemeraljob

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-v1alpha1-ephemeraljob"

// New returns the webhook of EphemeralJobs.
func New(api kinds.API, o kinds.Options) (kinds.Webhooks, error) {
	return kinds.New(api, kinds.Row[*v1alpha1.EphemeralJob]{
		Kind: v1alpha1.GroupVersion.WithKind("EphemeralJob"), Hub: &v1alpha1.EphemeralJob{},
		ValidatePath: Path, AdmitDeleting: true,
		Validate: validate, ValidateUpdate: validateUpdate,
		Lookup: containerFaults,
	}, o)
}

// containerFaults has the API server validate the containers of a new job that has no other fault.
func containerFaults(
	ctx context.Context, api kinds.API, c kinds.Change[*v1alpha1.EphemeralJob],
) (found kinds.Finding, err error) {
	if c.IsUpdate || len(c.Faults) > 0 {
		return found, nil
	}
	content, err := review.Decode(c.Raw)
	if err != nil {
		return found, err
	}
	verdict, err := podtemplate.Check(ctx, api, podtemplate.Template{
		Namespace: c.Namespace, Content: template(content, c.Now), Path: field.NewPath("spec", "template"), TellUnknown: true,
	})
	if err != nil {
		return found, err
	}
	for _, fault := range verdict.Faults {
		moved := *fault
		moved.Field = pathOf(fault.Field)
		found.Faults = append(found.Faults, &moved)
	}
	for i, path := range verdict.Unknown {
		verdict.Unknown[i] = pathOf(path)
	}
	found.Warnings = review.Unknown(verdict.Unknown)
	return found, nil
}
