package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/pub"
)

// monthOfTTL is the longest time that a finished pull job of an always-pulled image may stay, in seconds.
const monthOfTTL = 31 * 24 * 60 * 60

func newParser() *parser {
	p := &parser{flags: flag.NewFlagSet("kruise-manager", flag.ContinueOnError), noted: map[string]bool{}}
	p.flags.SetOutput(io.Discard) // the caller says what is wrong
	o := &p.options
	p.flags.Bool("version", false, "print the version, and end")
	p.flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig, outside of a cluster")
	p.flags.StringVar(&o.MetricsAddress, "metrics-addr", ":8080", "address of /metrics, plain HTTP; 0 is off")
	p.flags.BoolVar(&o.SecureMetrics, "metrics-secure", false,
		"serve --metrics-addr over TLS, to those whom the API server lets get /metrics")
	p.flags.StringVar(&o.ProbeAddress, "health-probe-addr", ":8000", "address of /healthz and /readyz; 0 is off")
	p.flags.BoolVar(&p.pprof, "enable-pprof", false, "serve profiles")
	p.flags.StringVar(&o.PprofAddress, "pprof-addr", "localhost:8090", "address of profiles")
	p.flags.StringVar(&o.Cache.Namespace, "namespace", "", "the only namespace to watch; empty is all")
	p.flags.StringVar(&p.resync, "sync-period", "", "how often all objects are looked at again; 0 is never, empty is 10h")
	p.flags.DurationVar(&o.Cache.SyncTimeout, "controller-cache-sync-timeout", 2*time.Minute,
		"how long a controller may take to fill its cache")
	p.flags.DurationVar(&o.Webhook.StartTimeout, "webhook-initialize-timeout", time.Minute,
		"how long the first certificate may take")
	p.flags.Float64Var(&o.QPS, "rest-config-qps", 0, "requests per second to the API server; 0 is no limit on this side")
	p.flags.IntVar(&o.Burst, "rest-config-burst", 0, "requests at once to the API server")
	p.flags.Func("feature-gates", "list of Gate=true or Gate=false; AllAlpha and AllBeta are known; may be repeated",
		func(list string) error {
			p.gates = strings.Join(slices.DeleteFunc([]string{p.gates, list}, func(s string) bool { return s == "" }), ",")
			return nil
		})
	p.flags.StringVar(&p.controllers, "controllers", "*",
		"controllers to run: * is all, x is one, -x leaves one out; one of "+known())
	p.flags.BoolVar(&o.ExcludePreparingDelete, "cloneset-scaling-exclude-preparing-delete", false,
		"do not count pods that a hook holds before their deletion")
	p.flags.BoolVar(&o.ScheduleDaemonSetPods, "assign-pods-by-scheduler", true,
		"let the scheduler bind the pods of DaemonSets; false writes the node into the pods")
	p.flags.BoolVar(&o.LooseDaemonSetBudget, "daemonset-loose-budget", false, "do not count pods of DaemonSets against "+
		"maxUnavailable that are not available and still to be updated, or kept by the partition")
	p.flags.BoolVar(&o.UnavailableStatefulSetPodsFirst, "statefulset-unavailable-first", false,
		"update the pods of StatefulSets that are not available before all others, whatever their ordinal")
	p.flags.BoolVar(&o.ScheduleBroadcastJobPods, "assign-bcj-pods-by-scheduler", true,
		"let the scheduler bind the pods of BroadcastJobs; false writes the node into the pods")
	p.flags.BoolVar(&o.RefreshNotUpdate, "sidecarset-refresh-not-update", false,
		"count ready pods of SidecarSets of type NotUpdate whenever pods change, not only when pods are created")
	p.inert = o.Logs.Flags(p.flags)
	p.flags.DurationVar(&o.NodeImageCreationDelay, "nodeimage-creation-delay", 30*time.Second,
		"how long a node has been ready before it gets its NodeImage")
	p.flags.Func("default-ttlseconds-for-always-nodeimage",
		"how long tags of pull jobs with an end stay on nodes, beyond what the job says: 0 to 2678400 seconds (default 300)",
		p.pullTTL)
	p.flags.StringVar(&o.NativeClass, "native-class", "", "class in the annotation kruisekit.dev/rollout of the "+
		"Deployments, StatefulSets and DaemonSets of apps/v1 that this installation updates, with the gate NativeRollouts")
	p.flags.Func("ws-enabled-versioned-status", "list of kinds, in lower case, of which WorkloadSpreads fill their "+
		"subsets once for each version of the pods (default deployment,replicaset)", func(v string) error {
		o.VersionedSpreads = append([]string{}, split(v)...)
		return nil
	})
	p.protection()
	p.clients()
	p.election()
	p.queues()
	p.withoutEffect()
	return p
}

func (p *parser) protection() {
	o := &p.options.Protection
	p.flags.StringVar(&o.LogPath, "protection-log-path", "",
		"directory of protection.log, with a line for each refused deletion; empty is the log of the process")
	p.flags.BoolVar(&o.HoldNamespaces, "protection-hold-namespaces", false,
		"refuse deletions of protected objects also in a terminating namespace, which stays until their labels are removed")
	p.flags.Func("protection-exempt-users", "list of users that may delete protected objects", func(v string) error {
		o.ExemptUsers = split(v)
		return nil
	})
	p.options.BudgetExemptUsers = pub.SystemUsers()
	p.flags.Func("pub-exempt-users", "list of users that no PodUnavailableBudget refuses, and whose disruptions are "+
		"recorded; empty refuses all, as OpenKruise does (default "+
		strings.Join(pub.SystemUsers(), ",")+")", func(v string) error {
		p.options.BudgetExemptUsers = split(v)
		return nil
	})
}

// clients of the webhooks.
func (p *parser) clients() {
	w := &p.options.Webhook
	p.flags.StringVar(&w.ClientCA, "webhook-client-ca-file", "",
		"file with the CA of the certificates that API servers show to webhooks; empty asks for none")
	p.flags.Func("webhook-client-names",
		"list of common names in the certificates of API servers; empty is any that the CA has signed", func(v string) error {
			w.ClientNames = split(v)
			return nil
		})
}

func (p *parser) election() {
	e := &p.options.Election
	p.flags.BoolVar(&e.Enabled, "enable-leader-election", true, "run controllers in one replica at a time")
	p.flags.StringVar(&e.Namespace, "leader-election-namespace", "", "namespace of the lease; empty is POD_NAMESPACE")
	p.flags.StringVar(&e.ID, "leader-election-id", "kruise-manager", "name of the lease")
	p.flags.Func("leader-election-resource-lock", "leases", func(v string) error {
		if v != "leases" {
			return errors.New("only leases are left")
		}
		return nil
	})
	p.flags.DurationVar(&e.LeaseDuration, "leader-election-lease-duration", 15*time.Second,
		"how long a dead leader blocks others")
	p.flags.DurationVar(&e.RenewDeadline, "leader-election-renew-deadline", 10*time.Second,
		"how long a leader tries to stay one")
	p.flags.DurationVar(&e.RetryPeriod, "leader-election-retry-period", 2*time.Second, "how often it tries")
}

func (p *parser) queues() {
	o := &p.options
	p.flags.DurationVar(&o.RateLimiter.BaseDelay, "rate-limiter-base-delay", 5*time.Millisecond,
		"pause of a controller after the first failure")
	p.flags.DurationVar(&o.RateLimiter.MaxDelay, "rate-limiter-max-delay", time.Minute,
		"longest pause of a controller after failures")
	p.flags.Float64Var(&o.RateLimiter.QPS, "rate-limiter-qps", 10, "retries per second of a controller")
	p.flags.IntVar(&o.RateLimiter.BucketSize, "rate-limiter-bucket-size", 100, "retries at once")
	// without a flag
	o.Workers = map[string]int{"imagelistpulljob": 3, "containerlaunchpriority": 4, "ephemeraljob": 10, "podreadiness": 3}
	for name, controller := range workers() {
		o.Workers[controller] = workersOf(controller)
		usage := fmt.Sprintf("objects of the controller at a time (default %d)", o.Workers[controller])
		p.flags.Func(name+"-workers", usage, func(v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return errors.New("want a number")
			}
			o.Workers[controller] = n
			return nil
		})
	}
}

func (p *parser) pullTTL(v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 0 || n > monthOfTTL {
		return fmt.Errorf("want 0 to %d", monthOfTTL)
	}
	p.options.PullKeepSeconds = ptr.To(int32(n))
	return nil
}

// withoutEffect accepts what unchanged manifests may pass.
func (p *parser) withoutEffect() {
	boolean := map[string]string{
		"allow-privileged":    "pod templates are checked by the API server, with its own rules",
		"disable-no-deepcopy": "lists that no reconciler changes are never copied",
	}
	for name, why := range boolean {
		p.inert[name] = why
		p.flags.BoolFunc(name, "no effect: "+why, func(string) error { return nil })
	}
	text := map[string]string{
		"expectation-timeout": "a lost expectation heals by a read within minutes",
	}
	for name, why := range text {
		p.inert[name] = why
		p.flags.Func(name, "no effect: "+why, func(string) error { return nil })
	}
}

// noteInert notes the flags that were given and have no effect.
func (p *parser) noteInert() {
	p.flags.Visit(func(f *flag.Flag) {
		if why, ok := p.inert[f.Name]; ok {
			p.note(fmt.Sprintf("--%s has no effect: %s", f.Name, why))
		}
	})
}

// workers maps the names in flags to those of controllers.
func workers() map[string]string {
	names := map[string]string{"crr": "containerrecreaterequest"}
	for _, n := range []string{
		"cloneset", "statefulset", "daemonset", "broadcastjob", "advancedcronjob", "sidecarset", "uniteddeployment",
		"podunavailablebudget", "workloadspread", "resourcedistribution", "imagepulljob", "nodeimage", "persistentpodstate",
		"podprobemarker", "nodepodprobe", "sidecarterminator",
	} {
		names[n] = n
	}
	return names
}

// workersOf returns how many objects of a controller are reconciled at a time. The passes of workloads and of pull jobs
// wait most of their time for answers to writes, so that more of them than in the reference go on at once.
func workersOf(controller string) int {
	switch controller {
	case "cloneset", "statefulset", "daemonset", "broadcastjob", "sidecarset", "uniteddeployment", "imagepulljob":
		return 10
	}
	return 3
}

func (p *parser) usage() string {
	var text strings.Builder
	text.WriteString("kruise-manager runs the controllers and webhooks of kruisekit.\n" +
		"kruise-manager migrate-storage rewrites stored objects; see its --help.\n\nFlags:\n")
	p.flags.SetOutput(&text)
	p.flags.PrintDefaults()
	text.WriteString("\nEnvironment:\n")
	for _, name := range slices.Sorted(maps.Keys(variables())) {
		fmt.Fprintf(&text, "  %s\n    \t%s\n", name, variables()[name])
	}
	return text.String()
}

func known() string {
	return strings.Join(controllers.Names(), ", ")
}

func split(list string) []string {
	var all []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}
