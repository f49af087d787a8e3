// Command kruise-manager is the reference manager: all controllers and webhooks of the library, with the names, flags and
// defaults that a cluster administrator knows. config/default deploys it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	_ "time/tzdata" // zones of schedules, where the image has none

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/process"
	"github.com/kruisekit/kruisekit/examples/reference/access"
)

func main() {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(options.Usage())
	case err != nil:
		fmt.Fprintln(os.Stderr, "kruise-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, logs io.Writer) error {
	o, err := options.Parse(args, os.Getenv)
	if err != nil {
		return err
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 { // reads it, which is GOMEMLIMIT
		o.MemoryLimit = limit
	}
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
	mgr, err := process.New(ctrl.LoggerInto(ctx, logger), rc, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
