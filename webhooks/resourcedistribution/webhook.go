package resourcedistribution

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-resourcedistribution"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// On admits distributions. Without it every one is rejected, because no controller distributes.
	On bool
	// Namespace is the manager's own. Distributions that name it as a target are rejected: the configuration of the
	// manager is there. With an empty one, none are.
	Namespace string
}

// New returns the webhook of ResourceDistributions.
func New(o Options) (kinds.Webhooks, error) {
	row := kinds.Row[*v1beta1.ResourceDistribution]{
		Kind: v1beta1.GroupVersion.WithKind(distribution.Kind),
		Hub:  &v1beta1.ResourceDistribution{}, Old: &v1alpha1.ResourceDistribution{},
		ValidatePath: Path, AdmitDeleting: true,
		Validate: func(d *v1beta1.ResourceDistribution) field.ErrorList {
			return distribution.Validate(d, o.Namespace)
		},
		ValidateUpdate: distribution.ValidateUpdate,
	}
	if !o.On {
		row.Closed = "feature gate ResourceDistributionGate is off: nothing would be distributed"
	}
	return kinds.New(nil, row, kinds.Options{})
}
