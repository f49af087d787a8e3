package preflight

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Command is the first argument of the subcommand.
const Command = "check"

// Options are the flags of the subcommand.
type Options struct {
	// Kubeconfig is for running outside of a cluster.
	Kubeconfig string
	// Namespace of the manager.
	Namespace string
}

// Parse reads the flags. The error of an asked-for help is flag.ErrHelp.
func Parse(args []string) (Options, error) {
	var o Options
	flags := o.flags()
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

// Usage is the text of --help.
func Usage() string {
	var text strings.Builder
	fmt.Fprintf(&text, "kruise-manager %s looks at a cluster before an installation or a takeover. It prints what "+
		"runs there, "+
		"what to set,\nwhat will differ for the objects that exist, the commands, and the way back. It writes "+
		"nothing.\n\nFlags:\n", Command)
	flags := new(Options).flags()
	flags.SetOutput(&text)
	flags.PrintDefaults()
	return text.String()
}

func (o *Options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller reports what is wrong
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig, outside of a cluster")
	flags.StringVar(&o.Namespace, "namespace", "kruise-system", "namespace of the manager")
	return flags
}

// Run reads the facts and prints the report. What it may not read is in the report.
func Run(ctx context.Context, rc *rest.Config, o Options, out io.Writer) error {
	f, err := Read(ctx, rc, o.Namespace, time.Now())
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, Check(f).String())
	return err
}
