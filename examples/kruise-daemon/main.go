// Command kruise-daemon is the reference daemon of a node: all that the library does there, with the names, flags and
// defaults that a cluster administrator knows. config/daemon deploys it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/examples/kruise-daemon/options"
	"github.com/kruisekit/kruisekit/examples/kruise-daemon/process"
	"github.com/kruisekit/kruisekit/examples/reference/access"
	"github.com/kruisekit/kruisekit/examples/reference/release"
)

// version is set by the linker; see hack/release.
var version string

func main() {
	built := release.Of(process.UserAgent, version)
	if release.Asked(os.Args[1:]) {
		fmt.Println(built)
		return
	}
	err := run(ctrl.SetupSignalHandler(), os.Args[1:], built, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(options.Usage())
	case err != nil:
		fmt.Fprintln(os.Stderr, "kruise-daemon:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, built release.Release, logs io.Writer) error {
	o, err := options.Parse(args, os.Getenv)
	if err != nil {
		return err
	}
	o.Release = built
	logger := o.Logs.Logger(logs)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	for _, note := range o.Notes {
		logger.Info(note)
	}
	rc, err := access.Config(o.Kubeconfig)
	if err != nil {
		return err
	}
	return process.Run(ctrl.LoggerInto(ctx, logger), rc, o)
}
