package containerrecreaterequest

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// MutatePath is where API servers expect requests to be completed.
const MutatePath = "/mutate-apps-kruise-io-containerrecreaterequest"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// NoDaemon rejects every request, because no daemon would stop containers.
	NoDaemon bool
	// Timeout of all reads of one admission. Default 8 seconds.
	Timeout time.Duration
}

// change is what is done to a request, under review.
type (
	request = appsv1beta1.ContainerRecreateRequest
	change  = kinds.Change[*request]
)

// New returns the webhook of ContainerRecreateRequests.
func New(api kinds.API, o Options) (kinds.Webhooks, error) {
	row := kinds.Row[*request]{
		Kind: appsv1beta1.GroupVersion.WithKind("ContainerRecreateRequest"),
		Hub:  &request{}, Old: &appsv1alpha1.ContainerRecreateRequest{},
		MutatePath: MutatePath, Admit: admit, Fixed: fixed,
	}
	if o.NoDaemon {
		row.Closed = "no container is restarted: feature gate KruiseDaemon is off"
	}
	return kinds.New(api, row, kinds.Options{Timeout: o.Timeout})
}

// fixed returns what an update must not change. In v1alpha1 the begin of the grace is an annotation.
func fixed(c change) field.ErrorList {
	faults := containerrestart.CheckUpdate(c.Before, c.Now)
	if c.Old {
		faults = append(faults, containerrestart.CheckGrace(c.Before, c.Now)...)
	}
	return faults
}

// admit completes a request with what must be known of its pod later. Nothing is read for a request that is invalid by
// itself.
func admit(ctx context.Context, api kinds.API, c change) (*request, field.ErrorList, error) {
	if faults := containerrestart.Check(c.Now); len(faults) > 0 {
		return nil, faults, nil
	}
	pod, node, err := whereabouts(ctx, api, c.Namespace, c.Now.Spec.PodName)
	if err != nil {
		return nil, nil, err
	}
	admitted, faults := containerrestart.Admit(c.Now, pod, node)
	return admitted, faults, nil
}
