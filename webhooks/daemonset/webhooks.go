package daemonset

import (
	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-daemonset"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-daemonset"
)

// New returns the webhooks of DaemonSets. Templates get no defaults, whatever the options are.
func New(api kinds.API, o kinds.Options) (kinds.Webhooks, error) {
	return kinds.New(api, kinds.Row[*appsv1beta1.DaemonSet]{
		Kind: appsv1beta1.GroupVersion.WithKind("DaemonSet"),
		Hub:  &appsv1beta1.DaemonSet{}, Old: &appsv1alpha1.DaemonSet{},
		MutatePath: MutatePath, ValidatePath: ValidatePath,
		Validate: validation.DaemonSet, ValidateUpdate: validation.DaemonSetUpdate,
		Template: &kinds.Template{
			At:        func(map[string]any) (template, claims []string) { return []string{"spec", "template"}, nil },
			AsWritten: func(map[string]any) bool { return true },
		},
	}, o)
}
