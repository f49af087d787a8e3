// Command kruise-manager is the reference manager: all controllers and webhooks of the library, with the names, flags
// and defaults that a cluster administrator knows. config/default deploys it.
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

	"k8s.io/client-go/features"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/migrate"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/process"
	"github.com/kruisekit/kruisekit/examples/reference/access"
	"github.com/kruisekit/kruisekit/examples/reference/logs"
	"github.com/kruisekit/kruisekit/examples/reference/release"
)

// version is set by the linker; see hack/release.
var version string

func main() {
	ctx, args := ctrl.SetupSignalHandler(), os.Args[1:]
	built := release.Of(process.UserAgent, version)
	if release.Asked(args) {
		fmt.Println(built)
		return
	}
	var err error
	usage := options.Usage
	if len(args) > 0 && args[0] == migrate.Command {
		usage = migrate.Usage
		err = migrateStorage(ctx, args[1:], os.Stdout)
	} else {
		err = run(ctx, args, built, os.Stderr)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage())
	case err != nil:
		fmt.Fprintln(os.Stderr, "kruise-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, built release.Release, out io.Writer) error {
	o, err := options.Parse(args, os.Getenv)
	if err != nil {
		return err
	}
	o.Release = built
	if err := streamLists(os.Getenv); err != nil {
		return err
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 { // reads it, which is GOMEMLIMIT
		o.MemoryLimit = limit
	}
	logger := o.Logs.Logger(out)
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
	if err := mgr.Add(collectOften(os.Getenv, startPeriod)); err != nil {
		return fmt.Errorf("add the end of the start: %w", err)
	}
	return mgr.Start(ctx)
}

// streamLists has informers receive their first list object by object, from API servers that can: the memory of a start
// is then that of the objects which the cache keeps, and not that of the whole list as it was sent.
func streamLists(getenv func(string) string) error {
	if getenv("KUBE_FEATURE_"+string(features.WatchListClient)) != "" {
		return nil // the administrator decides
	}
	gates, ok := features.FeatureGates().(interface {
		Set(feature features.Feature, on bool) error
	})
	if !ok {
		return nil
	}
	if err := gates.Set(features.WatchListClient, true); err != nil {
		return fmt.Errorf("stream lists: %w", err)
	}
	return nil
}

// migrateStorage is the subcommand that rewrites stored objects. It serves nothing and elects no leader.
func migrateStorage(ctx context.Context, args []string, out io.Writer) error {
	o, err := migrate.Parse(args)
	if err != nil {
		return err
	}
	logger := logs.Options{}.Logger(os.Stderr)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	rc, err := access.Config(o.Kubeconfig)
	if err != nil {
		return err
	}
	return migrate.Run(ctrl.LoggerInto(ctx, logger), rc, o, out)
}
