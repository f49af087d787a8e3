package broadcastjob

import (
	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-broadcastjob"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-broadcastjob"
)

// New returns the webhooks of BroadcastJobs. A missing restart policy is a default that TemplateNoDefaults does not
// turn off.
func New(api kinds.API, o kinds.Options) (kinds.Webhooks, error) {
	return kinds.New(api, kinds.Row[*appsv1beta1.BroadcastJob]{
		Kind: appsv1beta1.GroupVersion.WithKind("BroadcastJob"),
		Hub:  &appsv1beta1.BroadcastJob{}, Old: &appsv1alpha1.BroadcastJob{},
		MutatePath: MutatePath, ValidatePath: ValidatePath,
		Validate: validation.BroadcastJob,
		Template: &kinds.Template{
			At: func(map[string]any) (template, claims []string) { return []string{"spec", "template"}, nil },
		},
	}, o)
}
