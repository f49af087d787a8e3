package podscope

import (
	"cmp"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/tools/record"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/internal/scope"
)

// The names of the reference, and of the two configurations of pods, which the reference lacks.
const (
	DefaultConfiguration           = scope.DefaultConfiguration
	ProvisionalConfiguration       = scope.ProvisionalConfiguration
	DefaultMainConfiguration       = scope.DefaultMainConfiguration
	DefaultValidatingConfiguration = scope.DefaultValidatingConfiguration
	DefaultNamespace               = scope.DefaultNamespace
	DefaultService                 = scope.DefaultService
)

const (
	// keepRemoved is the default of Options.KeepRemoved: an object that is deleted and created again costs no write.
	keepRemoved = 3 * time.Minute
	// lookFor is the default of Options.LookFor. Every replica of the webhook looks more often.
	lookFor = 10 * time.Second
)

// Options of a Reconciler. The zero value behaves as the reference does by default.
type Options struct {
	// Configuration is the name of the MutatingWebhookConfiguration that is kept. Default DefaultConfiguration,
	// kruise-pods-webhook-configuration.
	Configuration string
	// Provisional is the name of the MutatingWebhookConfiguration of provisional entries. Default
	// ProvisionalConfiguration, kruise-pods-provisional-webhook-configuration.
	Provisional string
	// MainConfiguration is the one that the CA is taken from. Default DefaultMainConfiguration,
	// kruise-mutating-webhook-configuration.
	MainConfiguration string
	// ValidatingConfiguration is the one that NewDisruptions takes the CA from. Default DefaultValidatingConfiguration,
	// kruise-validating-webhook-configuration.
	ValidatingConfiguration string
	// Namespace is the manager's own, whose pods are never sent. Default DefaultNamespace, kruise-system.
	Namespace string
	// Service is the name of the webhook's, in that namespace. Default DefaultService, kruise-webhook-service.
	Service string
	// URL is where API servers reach the webhook without a service, and CABundle the CA there.
	URL      string
	CABundle []byte
	// ReadinessGateForAll sends all pods that lack the gate KruisePodReady. None is created while no replica answers.
	ReadinessGateForAll bool
	// EnhancedLiveness sends the pods that ask for their liveness probes to be moved.
	EnhancedLiveness bool
	// NoDeletes sends no deletion and no eviction for a PodUnavailableBudget, and Updates sends updates in place and
	// resizes. With neither deletions nor updates, budgets have no entries.
	NoDeletes, Updates bool
	// ExemptUsers are never refused by a PodUnavailableBudget: their requests are sent to be recorded, and admitted
	// while no replica answers.
	ExemptUsers []string
	// NoSpreads sends no pod and no deletion for a WorkloadSpread.
	NoSpreads bool
	// Serverless sends the pods of namespaces with PodProbeMarkers, whose probes the providers of virtual nodes run.
	Serverless bool
	// Off removes all entries.
	Off bool

	// InForce is called once, when API servers send new pods as the entries ask for. Before, as on a cold start, pods may
	// be created without what the webhook adds. Nil calls nothing.
	InForce func()
	// Recorder records events. SetupWithManager sets the manager's where it is nil.
	Recorder record.EventRecorder
	// Registerer registers the metrics; nil keeps none.
	Registerer prometheus.Registerer
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// KeepRemoved is how long a namespace stays in the entries after the last object that concerns its pods is gone.
	// Default 3 minutes.
	KeepRemoved time.Duration
	// LookFor is the time between two looks for a kind that is not installed. Default 10 seconds.
	LookFor time.Duration
}

func (o Options) withDefaults() Options {
	o.Configuration = cmp.Or(o.Configuration, DefaultConfiguration)
	o.Provisional = cmp.Or(o.Provisional, ProvisionalConfiguration)
	o.MainConfiguration = cmp.Or(o.MainConfiguration, DefaultMainConfiguration)
	o.ValidatingConfiguration = cmp.Or(o.ValidatingConfiguration, DefaultValidatingConfiguration)
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Service = cmp.Or(o.Service, DefaultService)
	o.KeepRemoved = cmp.Or(o.KeepRemoved, keepRemoved)
	o.LookFor = cmp.Or(o.LookFor, lookFor)
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	return o
}

// budgets reports whether anything heeds budgets.
func (o Options) budgets() bool { return !o.NoDeletes || o.Updates }

// client returns how API servers reach the webhook of new pods, without a CA where there is a service.
func (o Options) client() admissionregistrationv1.WebhookClientConfig { return o.reach().Client() }

func (o Options) reach() scope.Reach {
	return scope.Reach{Namespace: o.Namespace, Service: o.Service, URL: o.URL, CABundle: o.CABundle}
}
