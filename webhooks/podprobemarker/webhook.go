package podprobemarker

import (
	"net/http"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// Path receives the requests, as in the reference.
const Path = "/validate-apps-kruise-io-podprobemarker"

// Options of the webhook. The zero value behaves as the reference does by default.
type Options struct {
	// Off rejects every marker, because nothing would probe. It is for the feature gates PodProbeMarkerGate and
	// KruiseDaemon.
	Off bool
}

// New returns the webhook of PodProbeMarkers.
func New(o Options) (kinds.Webhooks, error) {
	row := kinds.Row[*v1alpha1.PodProbeMarker]{
		Kind: v1alpha1.GroupVersion.WithKind("PodProbeMarker"), Hub: &v1alpha1.PodProbeMarker{},
		ValidatePath: Path, AdmitDeleting: true, Code: http.StatusBadRequest,
		Validate: podprobe.Validate, ValidateUpdate: podprobe.ValidateUpdate, Warn: podprobe.Warnings,
	}
	if o.Off {
		row.Closed = "feature gates PodProbeMarkerGate and KruiseDaemon must be on"
	}
	return kinds.New(nil, row, kinds.Options{})
}
