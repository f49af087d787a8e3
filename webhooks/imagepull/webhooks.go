package imagepull

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
)

// Where API servers expect the defaults and the rules: a prefix, and the kind in small letters.
const (
	mutatePath   = "/mutate-apps-kruise-io-"
	validatePath = "/validate-apps-kruise-io-"
)

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// Jobs lets ImagePullJobs and ImageListPullJobs in.
	Jobs bool
	// NoDaemon rejects every object, because no daemon would pull.
	NoDaemon bool
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Webhooks answer admission requests for the three kinds.
type Webhooks struct{ options Options }

// New makes the webhooks.
func New(o Options) *Webhooks {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	return &Webhooks{options: o}
}

// SetupWithManager serves the webhooks on the manager's webhook server.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	handlers := map[string]admission.HandlerFunc{}
	for _, kind := range []string{"imagepulljob", "imagelistpulljob", "nodeimage"} {
		handlers[mutatePath+kind], handlers[validatePath+kind] = w.Mutate, w.Validate
	}
	return review.Serve(mgr, handlers)
}
