// Package options reads the command line and the environment of the manager into a value, checks it, and says what of
// it has no effect here.
//
// Names and defaults are those of the reference, but for these defaults: profiles are off and on localhost, the lease
// is in the namespace of the process, requests to the API server are not limited on our side.
package options

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/examples/reference/logs"
	"github.com/kruisekit/kruisekit/examples/reference/release"
)

// Options are the flags and the environment of the process.
type Options struct {
	// Kubeconfig is for running outside of a cluster; empty looks at KUBECONFIG and then at the pod.
	Kubeconfig string

	// Addresses to listen on; "0" is off.
	MetricsAddress, ProbeAddress, PprofAddress string
	// SecureMetrics serves metrics over TLS, to readers with a right to them.
	SecureMetrics bool

	Election Election
	Cache    Cache
	Webhook  Webhook

	// QPS and Burst limit requests to the API server; 0 leaves that to its priority and fairness.
	QPS   float64
	Burst int

	Controllers []string
	Workers     map[string]int
	RateLimiter RateLimiter

	Gates gates.Gates
	// ScheduleDaemonSetPods lets the scheduler bind the pods of DaemonSets.
	ScheduleDaemonSetPods bool
	// LooseDaemonSetBudget counts pods of DaemonSets that are not available as OpenKruise does.
	LooseDaemonSetBudget bool
	// UnavailableStatefulSetPodsFirst updates the pods of StatefulSets that are not available before all others.
	UnavailableStatefulSetPodsFirst bool
	// ScheduleBroadcastJobPods lets the scheduler bind the pods of BroadcastJobs.
	ScheduleBroadcastJobPods bool
	// ExcludePreparingDelete is about CloneSets.
	ExcludePreparingDelete bool
	// RefreshNotUpdate is about SidecarSets.
	RefreshNotUpdate bool
	// NativeClass is the class of the workloads of apps/v1 that are updated in place; empty for those
	// without a class.
	NativeClass string
	// VersionedSpreads are the kinds whose pods WorkloadSpreads count by version; nil for the default.
	VersionedSpreads []string
	// NodeImageCreationDelay is how long a node has been ready before it gets its NodeImage.
	NodeImageCreationDelay time.Duration
	// PullSecretNamespace and PullKeepSeconds are about pull jobs; empty and nil for the defaults.
	PullSecretNamespace string
	PullKeepSeconds     *int32
	Protection          Protection
	// BudgetExemptUsers are never refused by a PodUnavailableBudget.
	BudgetExemptUsers []string

	Logs logs.Options
	// Release is what the API server and metrics show.
	Release release.Release

	// MemoryLimit of the process in bytes; 0 is none. The main sets it.
	MemoryLimit int64

	// Notes say what was asked for and has no effect, or follows from something else.
	Notes []string
}

// Election of a leader.
type Election struct {
	Enabled                                   bool
	Namespace, ID                             string
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Cache of what the controllers read.
type Cache struct {
	// Namespace is the only one that is read; empty is all.
	Namespace string
	// Resync is nil for the default of controller-runtime.
	Resync      *time.Duration
	SyncTimeout time.Duration
}

// Webhook server and its certificate.
type Webhook struct {
	Namespace, Service, Secret string
	Port                       int
	StartTimeout               time.Duration
	RenewBefore                time.Duration
	// ClientCA is a file with the CA of the certificates of API servers, and ClientNames are the names in these; empty for
	// no check.
	ClientCA    string
	ClientNames []string
}

// Protection of objects from deletion.
type Protection struct {
	// LogPath is the directory of protection.log; empty for lines of the log of the process.
	LogPath string
	// ExemptUsers may delete protected objects.
	ExemptUsers []string
	// HoldNamespaces keeps a namespace terminating while protected objects are in it.
	HoldNamespaces bool
}

// RateLimiter of controllers.
type RateLimiter struct {
	BaseDelay, MaxDelay time.Duration
	QPS                 float64
	BucketSize          int
}

// Parse reads both. The error of an asked-for help is flag.ErrHelp.
func Parse(args []string, getenv func(string) string) (Options, error) {
	p := newParser()
	if err := p.flags.Parse(args); err != nil {
		return Options{}, err
	}
	if p.flags.NArg() > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q", p.flags.Arg(0))
	}
	p.noteInert()
	o := &p.options
	var err error
	if o.Gates, err = gates.Parse(p.gates); err != nil {
		return Options{}, err
	}
	p.note(o.Gates.Notes()...)
	p.environment(getenv)
	p.settle()
	return p.options, errors.Join(append(p.failures, o.validate()...)...)
}

// Usage is the text of --help.
func Usage() string { return newParser().usage() }

// settle works out what depends on several inputs.
func (p *parser) settle() {
	o := &p.options
	if o.Election.Namespace == "" {
		o.Election.Namespace = o.Webhook.Namespace
	}
	if !p.pprof {
		o.PprofAddress = "0"
	}
	o.Controllers = split(p.controllers)
	switch resync, err := time.ParseDuration(p.resync); {
	case p.resync == "":
	case err != nil:
		p.note(fmt.Sprintf("--sync-period=%s is no duration: the default is used", p.resync))
	default:
		o.Cache.Resync = &resync
	}
}

func (o *Options) validate() []error {
	all := []error{o.Logs.Validate()}
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	e, r := o.Election, o.RateLimiter
	refuse(e.ID == "", "--leader-election-id must not be empty")
	refuse(e.RetryPeriod <= 0, "--leader-election-retry-period must be more than 0")
	refuse(e.RenewDeadline <= e.RetryPeriod, "--leader-election-renew-deadline=%s must be more than the retry period %s",
		e.RenewDeadline, e.RetryPeriod)
	refuse(e.LeaseDuration <= e.RenewDeadline,
		"--leader-election-lease-duration=%s must be more than the renew deadline %s", e.LeaseDuration, e.RenewDeadline)
	refuse(o.Cache.SyncTimeout <= 0, "--controller-cache-sync-timeout must be more than 0")
	refuse(o.Webhook.StartTimeout <= 0, "--webhook-initialize-timeout must be more than 0")
	refuse(len(o.Webhook.ClientNames) > 0 && o.Webhook.ClientCA == "",
		"--webhook-client-names needs --webhook-client-ca-file")
	refuse(o.Webhook.Port < 1 || o.Webhook.Port > 65535, "WEBHOOK_PORT=%d is no port", o.Webhook.Port)
	refuse(r.BaseDelay <= 0 || r.MaxDelay < r.BaseDelay,
		"--rate-limiter-base-delay=%s must be more than 0 and at most --rate-limiter-max-delay=%s", r.BaseDelay, r.MaxDelay)
	refuse(r.QPS <= 0 || r.BucketSize < 1, "--rate-limiter-qps and --rate-limiter-bucket-size must be more than 0")
	refuse(o.NodeImageCreationDelay < 0, "--nodeimage-creation-delay=%s must not be negative", o.NodeImageCreationDelay)
	for name, n := range o.Workers {
		refuse(n < 1, "--%s-workers=%d must be at least 1", name, n)
	}
	return all
}

// parser is what flags are read into on their way.
type parser struct {
	flags    *flag.FlagSet
	options  Options
	failures []error
	noted    map[string]bool

	gates, resync, controllers string
	pprof                      bool
	inert                      map[string]string
}

// note adds what has not been noted yet.
func (p *parser) note(all ...string) {
	for _, n := range all {
		if !p.noted[n] {
			p.noted[n] = true
			p.options.Notes = append(p.options.Notes, n)
		}
	}
}
