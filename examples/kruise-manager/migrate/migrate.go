// Package migrate is the subcommand that rewrites stored objects in the storage version. It reads its flags, migrates
// all kinds with two versions, and prints a table.
package migrate

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/config/crd/storage"
)

// Command is the first argument of the subcommand.
const Command = "migrate-storage"

// Options are the flags of the subcommand.
type Options struct {
	// Kubeconfig is for running outside of a cluster.
	Kubeconfig string
	// QPS is how many requests are sent in a second.
	QPS int

	Storage storage.Options
}

// Parse reads the flags. The error of an asked-for help is flag.ErrHelp.
func Parse(args []string) (Options, error) {
	var o Options
	flags := o.flags()
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.QPS < 1:
		return o, fmt.Errorf("--qps=%d must be at least 1", o.QPS)
	case o.Storage.Settle <= 0:
		return o, fmt.Errorf("--settle=%s must be more than 0", o.Storage.Settle)
	}
	return o, nil
}

// Usage is the text of --help.
func Usage() string {
	var text strings.Builder
	fmt.Fprintf(&text, "kruise-manager %s rewrites stored objects in the storage version of their CRD, "+
		"and removes older versions from status.storedVersions.\n\nFlags:\n", Command)
	flags := new(Options).flags()
	flags.SetOutput(&text)
	flags.PrintDefaults()
	return text.String()
}

func (o *Options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller reports what is wrong
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig, outside of a cluster")
	flags.BoolVar(&o.Storage.DryRun, "dry-run", false, "count the objects, and write nothing")
	flags.IntVar(&o.QPS, "qps", 20, "requests per second")
	flags.DurationVar(&o.Storage.Settle, "settle", 90*time.Second,
		"pause before the first write, in which all API servers observe the CRDs and finish what they have begun")
	return flags
}

// Run migrates all kinds, prints its progress, and then a line for each. The error names what is left in an older
// version.
func Run(ctx context.Context, rc *rest.Config, o Options, out io.Writer) error {
	targets, err := Targets()
	if err != nil {
		return err
	}
	rc = rest.CopyConfig(rc)
	rc.UserAgent, rc.QPS, rc.Burst = "kruise-manager-"+Command, float32(o.QPS), o.QPS
	o.Storage.Report = func(p storage.Progress) { fmt.Fprintln(out, line(p)) }
	results, err := storage.Migrate(ctx, rc, targets, o.Storage)
	if err != nil {
		return err
	}
	if err := table(out, results, o.Storage.DryRun); err != nil {
		return err
	}
	return storage.Err(results)
}

// Targets are the CRDs with two versions, and their storage versions.
func Targets() ([]storage.Target, error) {
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		return nil, err
	}
	var targets []storage.Target
	for _, c := range crds {
		for _, v := range c.Spec.Versions {
			if len(c.Spec.Versions) > 1 && v.Storage {
				targets = append(targets, storage.Target{CRD: c.Name, Version: v.Name})
			}
		}
	}
	return targets, nil
}

// line describes the progress.
func line(p storage.Progress) string {
	if p.Wait > 0 {
		return fmt.Sprintf("waiting %s before the first write: API servers may still write older versions of %s",
			p.Wait.Round(time.Second), p.CRD)
	}
	text := fmt.Sprintf("%s: %d of %d objects rewritten", p.CRD, p.Objects, p.Total)
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	if p.Err != nil {
		text += ", then an error"
	}
	if p.Pruned {
		text += fmt.Sprintf(", only %s is stored", p.Version)
	}
	return text
}

// table prints a line for each CRD.
func table(out io.Writer, results []storage.Result, dryRun bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CRD\tSTORED\tSTORAGE\tOBJECTS\tRESULT")
	for _, r := range results {
		objects := "-"
		if r.Objects+r.Failed > 0 {
			objects = strconv.Itoa(r.Objects + r.Failed)
		}
		stored := cmp.Or(strings.Join(r.Stored, ","), "-")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.CRD, stored, r.Version, objects, outcome(r, dryRun))
	}
	return w.Flush()
}

// outcome is the last column of a line.
func outcome(r storage.Result, dryRun bool) string {
	switch {
	case r.Failed > 0:
		return fmt.Sprintf("%d failed", r.Failed)
	case r.Err != nil:
		return "failed"
	case len(r.Stored) == 0:
		return "not installed"
	case r.Pruned:
		return "rewritten"
	case len(r.Stored) == 1 && r.Stored[0] == r.Version:
		return "nothing to do"
	case dryRun:
		return "to be rewritten"
	}
	return "rewritten"
}
