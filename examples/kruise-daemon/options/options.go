// Package options reads the command line and the environment of the daemon into a value, checks it, and says what of it
// has no effect here.
//
// Names and defaults are those of the reference, but for these defaults: profiles are off and on localhost, pulls are
// limited and leave a share of the disk free, and the limits of requests hold for all of the process.
package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/examples/reference/logs"
	"github.com/kruisekit/kruisekit/examples/reference/release"
)

const (
	// nodeName is the variable with the name of the node.
	nodeName = "NODE_NAME"
	// minFreePercent lies between two defaults of kubelets. Below 15 percent they evict pods. They collect images until
	// 20 percent are free, so that a bound of 20 would leave pulls no room after it.
	minFreePercent = 17
)

// Options are the flags and the environment of the process.
type Options struct {
	// Kubeconfig is for running outside of a cluster; empty looks at KUBECONFIG and then at the pod.
	Kubeconfig string
	// NodeName is the node that it works on.
	NodeName string

	// Addresses to listen on; "0" is off.
	Address, PprofAddress string
	// SecureMetrics serves Address over TLS, and metrics to readers with a right to them.
	SecureMetrics bool

	Runtime Runtime
	Pull    Pull

	// QPS and Burst limit all requests of the process to the API server; negative ones do not.
	QPS   float64
	Burst int

	Gates gates.Gates
	Logs  logs.Options
	// Release is what the API server and metrics show.
	Release release.Release

	// Notes say what was asked for and has no effect, or follows from something else.
	Notes []string
}

// Runtime says where the container runtimes of the node are.
type Runtime struct {
	// Directory has their sockets.
	Directory string
	// Socket is the only one to look at, below the directory; empty is all that are known.
	Socket string
	// Wait is how long the first may take to come.
	Wait time.Duration
}

// Pull is about pulling images.
type Pull struct {
	// Workers are how many images may be pulled at a time; 0 is the default of the library, negative is no limit.
	Workers int
	// MinFreePercent is the share of the file system of images that pulls leave free; 0 is no bound.
	MinFreePercent int
	// PluginConfig and PluginDirectory are those of a kubelet's credential providers.
	PluginConfig, PluginDirectory string
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
	o := &p.options
	var err error
	if o.Gates, err = gates.Parse(p.gates); err != nil {
		return Options{}, err
	}
	o.NodeName = getenv(nodeName)
	p.settle()
	return p.options, errors.Join(o.validate()...)
}

// Usage is the text of --help.
func Usage() string {
	p := newParser()
	var text strings.Builder
	text.WriteString(
		"kruise-daemon pulls images, restarts containers and probes pods on the node that it runs on.\n\nFlags:\n")
	p.flags.SetOutput(&text)
	p.flags.PrintDefaults()
	fmt.Fprintf(&text, "\nEnvironment:\n  %s\n    \tname of the node; required\n", nodeName)
	return text.String()
}

// parser is what flags are read into on their way.
type parser struct {
	flags   *flag.FlagSet
	options Options
	inert   map[string]string

	gates string
	pprof bool
}

func newParser() *parser {
	p := &parser{flags: flag.NewFlagSet("kruise-daemon", flag.ContinueOnError)}
	p.flags.SetOutput(io.Discard) // the caller says what is wrong
	o := &p.options
	p.flags.Bool("version", false, "print the version, and end")
	p.flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig, outside of a cluster")
	p.flags.StringVar(&o.Address, "addr", ":10221", "address of /metrics, /healthz and /livez, plain HTTP; 0 is off")
	p.flags.BoolVar(&o.SecureMetrics, "metrics-secure", false,
		"serve --addr over TLS, and /metrics to those whom the API server lets get it")
	p.flags.BoolVar(&p.pprof, "enable-pprof", false, "serve profiles")
	p.flags.StringVar(&o.PprofAddress, "pprof-addr", "localhost:10222", "address of profiles")
	p.flags.StringVar(&o.Runtime.Directory, "socket-dir", "/hostvarrun",
		"directory where the sockets of container runtimes are")
	p.flags.StringVar(&o.Runtime.Socket, "socket-file", "",
		"the only socket to look at, below that directory; empty is all that are known")
	p.flags.DurationVar(&o.Runtime.Wait, "runtime-timeout", 30*time.Second,
		"how long the first container runtime may take to come")
	p.flags.IntVar(&o.Pull.Workers, "max-workers-for-pull-image", 0,
		"images to pull at a time; 0 is 5, negative is no limit")
	p.flags.IntVar(&o.Pull.MinFreePercent, "image-pull-min-free-percent", minFreePercent,
		"percent of the image file system that pulls leave free; 0 is no bound")
	p.flags.StringVar(&o.Pull.PluginConfig, "plugin-config-file", "/kruise/CredentialProviderPlugin.yaml",
		"configuration of credential providers, as of a kubelet; it may be missing")
	p.flags.StringVar(&o.Pull.PluginDirectory, "plugin-bin-dir", "/kruise/plugins", "directory of credential providers")
	p.flags.Float64Var(&o.QPS, "rest-config-qps", 0,
		"requests per second to the API server; 0 is 20, negative is no limit on this side")
	p.flags.IntVar(&o.Burst, "rest-config-burst", 0, "requests at once to the API server; 0 is 30")
	p.flags.StringVar(&p.gates, "feature-gates", "",
		"list of Gate=true or Gate=false, as of the manager; AllAlpha and AllBeta are known")
	p.inert = o.Logs.Flags(p.flags)
	return p
}

// settle works out what depends on several inputs.
func (p *parser) settle() {
	o := &p.options
	p.flags.Visit(func(f *flag.Flag) {
		if why, ok := p.inert[f.Name]; ok {
			o.Notes = append(o.Notes, fmt.Sprintf("--%s has no effect: %s", f.Name, why))
		}
	})
	o.Notes = append(o.Notes, o.Gates.Notes()...)
	if o.Runtime.Socket != "" && runtime.GOOS == "windows" {
		o.Notes = append(o.Notes, "--socket-file has no effect: on Windows a runtime has a pipe")
	}
	if !p.pprof {
		o.PprofAddress = "0"
	}
	if o.QPS == 0 {
		o.QPS = 20
	}
	if o.Burst == 0 {
		o.Burst = 30
	}
}

func (o *Options) validate() []error {
	all := []error{o.Logs.Validate()}
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	refuse(o.NodeName == "", "%s is empty: want the name of the node", nodeName)
	refuse(o.Runtime.Directory == "", "--socket-dir must not be empty")
	refuse(o.Runtime.Socket != "" && !filepath.IsLocal(o.Runtime.Socket),
		"--socket-file=%s: want a path below --socket-dir", o.Runtime.Socket)
	refuse(o.Runtime.Wait < 0, "--runtime-timeout=%s must not be negative", o.Runtime.Wait)
	refuse(o.Pull.MinFreePercent < 0 || o.Pull.MinFreePercent > 99,
		"--image-pull-min-free-percent=%d: want 0 to 99", o.Pull.MinFreePercent)
	refuse(o.QPS > 0 && o.Burst < 1, "--rest-config-burst=%d must be at least 1", o.Burst)
	return all
}
