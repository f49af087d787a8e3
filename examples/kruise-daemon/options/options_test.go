package options_test

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kruisekit/kruisekit/examples/kruise-daemon/options"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/examples/reference/logs"
)

func on(node string) func(string) string {
	return func(name string) string {
		if name == "NODE_NAME" {
			return node
		}
		return ""
	}
}

func defaults() options.Options {
	return options.Options{
		NodeName: "node-a", Address: ":10221", PprofAddress: "0",
		Runtime: options.Runtime{Directory: "/hostvarrun", Wait: 30 * time.Second},
		Pull: options.Pull{
			MinFreePercent: 17, PluginConfig: "/kruise/CredentialProviderPlugin.yaml", PluginDirectory: "/kruise/plugins",
		},
		QPS: 20, Burst: 30,
		Logs: logs.Options{Format: "text"},
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		why, args string
		want      func(o *options.Options)
	}{
		"nothing": {"the defaults", "", func(*options.Options) {}},
		"the reference's": {
			"what its chart passes is accepted as it is",
			"--logtostderr=true --v=4 --addr=:10221 --feature-gates=ImagePullJobGate=true --socket-file=containerd.sock " +
				"--enable-pprof=true --pprof-addr=localhost:10222 --log_file_max_size=1800",
			func(o *options.Options) {
				o.Logs.Verbosity, o.Runtime.Socket, o.PprofAddress = 4, "containerd.sock", "localhost:10222"
				o.Notes = []string{
					"--log_file_max_size has no effect: logs go to stderr", "--logtostderr has no effect: logs go to stderr",
				}
			},
		},
		"pulls": {"", "--max-workers-for-pull-image=2 --plugin-config-file=/c --plugin-bin-dir=/b", func(o *options.Options) {
			o.Pull = options.Pull{Workers: 2, MinFreePercent: 17, PluginConfig: "/c", PluginDirectory: "/b"}
		}},
		"all pulls": {
			"whoever asks for no limit gets it", "--max-workers-for-pull-image=-1",
			func(o *options.Options) { o.Pull.Workers = -1 },
		},
		"full disk": {
			"zero is no bound", "--image-pull-min-free-percent=0", func(o *options.Options) { o.Pull.MinFreePercent = 0 },
		},
		"slow": {
			"a limit of requests", "--rest-config-qps=0.5 --rest-config-burst=1",
			func(o *options.Options) { o.QPS, o.Burst = 0.5, 1 },
		},
		"no limit": {
			"API servers have limits of their own", "--rest-config-qps=-1", func(o *options.Options) { o.QPS = -1 },
		},
		"elsewhere": {
			"k3s, and outside of a pod", "--socket-dir=/run/k3s --runtime-timeout=0",
			func(o *options.Options) { o.Runtime = options.Runtime{Directory: "/run/k3s"} },
		},
		"deep": {
			"a socket may be in a directory of its own", "--socket-file=containerd/containerd.sock",
			func(o *options.Options) { o.Runtime.Socket = "containerd/containerd.sock" },
		},
		"kubeconfig": {"outside of a cluster", "--kubeconfig=/k", func(o *options.Options) { o.Kubeconfig = "/k" }},
		"pprof": {
			"on request, and then not for the whole network", "--enable-pprof",
			func(o *options.Options) { o.PprofAddress = "localhost:10222" },
		},
		"no daemon": {
			"the gate of the whole turns off others", "--feature-gates=KruiseDaemon=false",
			func(o *options.Options) {
				o.Notes = []string{
					"DaemonWatchingPod=false because of KruiseDaemon", "InPlaceUpdateEnvFromMetadata=false because of KruiseDaemon",
					"PodProbeMarkerGate=false because of KruiseDaemon",
				}
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := options.Parse(strings.Fields(c.args), on("node-a"))
			if err != nil {
				t.Fatal(err)
			}
			want := defaults()
			c.want(&want)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(options.Options{}, "Gates")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if pods := !strings.Contains(c.args, "KruiseDaemon=false"); got.Gates.On(gates.DaemonWatchingPod) != pods {
				t.Errorf("DaemonWatchingPod is %t", !pods)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--socket-file=../docker.sock":  "want a path below",
		"--socket-file=/run/x.sock":     "want a path below",
		"--socket-dir=":                 "must not be empty",
		"--runtime-timeout=-1s":         "must not be negative",
		"--rest-config-burst=-1":        "at least 1",
		"--feature-gates=Toaster=true":  `no feature gate "Toaster"`,
		"--logging-format=xml":          "want text or json",
		"-v=-1":                         "must not be negative",
		"--max-concurrency=1":           "not defined",
		"argument":                      `unexpected argument "argument"`,
		"--max-workers-for-pull-image=": "invalid value",

		"--image-pull-min-free-percent=-1":  "want 0 to 99",
		"--image-pull-min-free-percent=100": "want 0 to 99",
	} {
		if _, err := options.Parse(strings.Fields(args), on("node-a")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
	if _, err := options.Parse(nil, on("")); err == nil || !strings.Contains(err.Error(), "NODE_NAME") {
		t.Errorf("without the name of the node: %v", err)
	}
}

func TestHelp(t *testing.T) {
	if _, err := options.Parse([]string{"--help"}, on("")); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"-socket-file", "NODE_NAME", "-max-workers-for-pull-image"} {
		if !strings.Contains(options.Usage(), want) {
			t.Errorf("the help does not tell of %s", want)
		}
	}
}
