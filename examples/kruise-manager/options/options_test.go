package options_test

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/reference/logs"
	"github.com/kruisekit/kruisekit/pub"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestDefaults(t *testing.T) {
	got, err := options.Parse(nil, env())
	if err != nil {
		t.Fatal(err)
	}
	want := options.Options{
		ScheduleBroadcastJobPods: true,
		ScheduleDaemonSetPods:    true,
		MetricsAddress:           ":8080", ProbeAddress: ":8000", PprofAddress: "0",
		Election: options.Election{
			Enabled: true, Namespace: "kruise-system", ID: "kruise-manager",
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		},
		Cache: options.Cache{SyncTimeout: 2 * time.Minute},
		Webhook: options.Webhook{
			Namespace: "kruise-system", Service: "kruise-webhook-service", Secret: "kruise-webhook-certs", Port: 9876,
			StartTimeout: time.Minute, RenewBefore: 180 * 24 * time.Hour,
		},
		Controllers: []string{"*"},
		RateLimiter: options.RateLimiter{BaseDelay: 5 * time.Millisecond, MaxDelay: time.Minute, QPS: 10, BucketSize: 100},
		Logs:        logs.Options{Format: "text"},

		NodeImageCreationDelay: 30 * time.Second,
		BudgetExemptUsers:      pub.SystemUsers(),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(options.Options{}, "Workers", "Gates")); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	for name, n := range got.Workers {
		want := 3
		switch name {
		case "containerlaunchpriority":
			want = 4
		case "ephemeraljob", "cloneset", "statefulset", "daemonset", "broadcastjob", "sidecarset", "uniteddeployment",
			"imagepulljob":
			want = 10
		}
		if n != want {
			t.Errorf("%d workers of %s, want %d", n, name, want)
		}
	}
	if len(got.Workers) != 21 || got.Workers["cloneset"] == 0 || got.Workers["containerrecreaterequest"] == 0 {
		t.Errorf("workers %v, want 21", got.Workers)
	}
	if got.Gates.String() != "" {
		t.Errorf("gates %s are not as by default", got.Gates)
	}
}

// What the reference's chart and manifests pass is accepted as it is.
func TestManifestsOfTheReference(t *testing.T) {
	args := strings.Fields(`--enable-leader-election --metrics-addr=:8080 --health-probe-addr=:8000 --logtostderr=true
		--leader-election-namespace=kruise-system --v=4 --feature-gates=ImagePullJobGate=true --sync-period=0
		--logging-format=json
		--allow-privileged=true --rest-config-qps=30 --rest-config-burst=50 --crr-workers=5 --podprobemarker-workers=5
		--expectation-timeout=5m
		--leader-election-resource-lock=leases --default-ttlseconds-for-always-nodeimage=300 --enable-pprof=true
		--pprof-addr=localhost:8090
		--log_file_max_size=1800 --log_backtrace_at=main.go:1 --log-json-split-stream=true --log-text-info-buffer-size=0`)
	o, err := options.Parse(args, env("POD_NAMESPACE", "elsewhere", "WEBHOOK_PORT", "1234", "CERTS_RENEW_BEFORE", "1y",
		"WEBHOOK_CERT_DIR", "/tmp", "KRUISE_DAEMON_CONFIG_NS", "pulls"))
	if err != nil {
		t.Fatal(err)
	}
	if o.Logs.Verbosity != 4 || o.QPS != 30 || o.Burst != 50 || o.PprofAddress != "localhost:8090" ||
		o.Cache.Resync == nil || *o.Cache.Resync != 0 {
		t.Errorf("%+v", o)
	}
	if o.Webhook.Namespace != "elsewhere" || o.Election.Namespace != "kruise-system" || o.Webhook.Port != 1234 ||
		o.Webhook.RenewBefore != 365*24*time.Hour {
		t.Errorf("%+v %+v", o.Webhook, o.Election)
	}
	if o.Workers["podprobemarker"] != 5 {
		t.Errorf("workers %v", o.Workers)
	}
	if o.PullKeepSeconds == nil || *o.PullKeepSeconds != 300 || o.PullSecretNamespace != "pulls" {
		t.Errorf("pull jobs: %v, %q", o.PullKeepSeconds, o.PullSecretNamespace)
	}
	for _, want := range []string{"--logtostderr", "--allow-privileged", "--expectation-timeout", "WEBHOOK_CERT_DIR"} {
		if n := strings.Count(strings.Join(o.Notes, "\n"), want); n != 1 {
			t.Errorf("%s is noted %d times, want once: %q", want, n, o.Notes)
		}
	}
}

func TestElectionFollowsThePod(t *testing.T) {
	o, err := options.Parse(nil, env("POD_NAMESPACE", "elsewhere"))
	if err != nil || o.Election.Namespace != "elsewhere" {
		t.Errorf("the lease is in %q, want elsewhere: %v", o.Election.Namespace, err)
	}
}

// The reference starts with these, and so does this.
func TestForgiven(t *testing.T) {
	for _, period := range []string{"30x", "0d", "-1y", "y", "d", "1", "3y", "9999999999999999999y"} {
		o, err := options.Parse([]string{"--sync-period=abc"}, env("CERTS_RENEW_BEFORE", period))
		if err != nil || o.Cache.Resync != nil || o.Webhook.RenewBefore != 180*24*time.Hour || len(o.Notes) != 2 {
			t.Errorf("%s: %v, %s, %q", period, err, o.Webhook.RenewBefore, o.Notes)
		}
	}
}

func TestRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--default-ttlseconds-for-always-nodeimage=-1":      "want 0 to 2678400",
		"--default-ttlseconds-for-always-nodeimage=2678401": "want 0 to 2678400",
		"--leader-election-resource-lock=configmaps":        "only leases",
		"--leader-election-lease-duration=5s":               "must be more than the renew deadline",
		"--leader-election-id=":                             "must not be empty",
		"--cloneset-workers=0":                              "--cloneset-workers=0",
		"--cloneset-workers=many":                           "want a number",
		"--controllers=*,-toaster":                          `no controller "toaster"`,
		"--feature-gates=Toaster=true":                      `no feature gate "Toaster"`,
		"--nodeimage-creation-delay=-1s":                    "must not be negative",
		"--logging-format=xml":                              "want text or json",
		"--rate-limiter-base-delay=1h":                      "at most",
		"--unheard-of":                                      "not defined",
		"argument":                                          `unexpected argument "argument"`,
	} {
		if _, err := options.Parse(strings.Fields(args), env()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
	for _, port := range []string{"many", "0", "65536"} {
		if _, err := options.Parse(nil, env("WEBHOOK_PORT", port)); err == nil ||
			strings.Count(err.Error(), "WEBHOOK_PORT") != 1 {
			t.Errorf("port %s: %v", port, err)
		}
	}
}

func TestHelp(t *testing.T) {
	if _, err := options.Parse([]string{"--help"}, env()); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"-controllers", "CERTS_RENEW_BEFORE", "-cloneset-workers"} {
		if !strings.Contains(options.Usage(), want) {
			t.Errorf("the help does not tell of %s", want)
		}
	}
}

func TestWebhookClients(t *testing.T) {
	got, err := options.Parse([]string{"--webhook-client-ca-file=/ca.pem", "--webhook-client-names=a, b"}, env())
	if err != nil {
		t.Fatal(err)
	}
	w := got.Webhook
	if diff := cmp.Diff([]string{"/ca.pem", "a", "b"}, append([]string{w.ClientCA}, w.ClientNames...)); diff != "" {
		t.Errorf("clients (-want +got):\n%s", diff)
	}
	if _, err := options.Parse([]string{"--webhook-client-names=a"}, env()); err == nil ||
		!strings.Contains(err.Error(), "needs --webhook-client-ca-file") {
		t.Errorf("names without a CA: %v", err)
	}
}
