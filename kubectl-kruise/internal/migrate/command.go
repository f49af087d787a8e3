package migrate

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/preflight"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// flags of the command.
type flags struct {
	from, source, target string
	create, copies       bool
	inPlace              bool
	replicas, surge      int32
	timeout              int32
	interval             time.Duration
	check                bool
	system               string
}

// New returns the command migrate.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := flags{replicas: -1, surge: 1, timeout: -1, interval: time.Second, system: "kruise-system"}
	cmd := &cobra.Command{
		Use: "migrate (CloneSet --from Deployment | StatefulSet --from StatefulSet) --src-name NAME [--dst-name NAME] " +
			"| --check",
		Short: "Migrate a Deployment to a CloneSet, or a StatefulSet to one of apps.kruise.io",
		Long: "Migrate a Deployment to a CloneSet, pod by pod or in place, or a StatefulSet of apps to one of " +
			"apps.kruise.io in place.\n\nIn place, the new workload takes the running pods over, and no container restarts. " +
			"The source must be settled: else the command names the reasons, and deletes nothing. --dry-run prints what " +
			"happens to each pod. Each step prints the way back. A migration that was interrupted goes on when the command " +
			"is called again.\n\n" +
			"--check looks at a cluster before kruisekit is installed or takes OpenKruise over. It prints what runs there, " +
			"what to set, what will differ for the objects that exist, the commands, and the way back. It writes nothing.",
		Example: "  # Make an empty CloneSet of the Deployment web\n" +
			"  kubectl kruise migrate CloneSet --from Deployment --src-name web --dst-name web --create\n\n" +
			"  # Move 10 pods, of which 2 may run twice\n" +
			"  kubectl kruise migrate CloneSet --from Deployment --src-name web --dst-name web --replicas 10 --max-surge 2\n\n" +
			"  # Take all pods over without a restart\n" +
			"  kubectl kruise migrate CloneSet --from Deployment --src-name web --in-place\n\n" +
			"  # See what a takeover of OpenKruise will change\n" +
			"  kubectl kruise migrate --check",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.check {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
	}
	cmdutil.AddDryRunFlag(cmd)
	v := cmd.Flags()
	v.StringVar(&o.from, "from", "", "The kind of the source: Deployment or StatefulSet")
	v.StringVar(&o.source, "src-name", "", "The name of the source")
	v.StringVar(&o.target, "dst-name", "", "The name of the target: that of the source where the flag is missing")
	v.BoolVar(&o.create, "create", false, "Create the CloneSet without pods, and stop")
	v.BoolVar(&o.copies, "copy", false, "Create the CloneSet with as many pods as the Deployment has")
	v.BoolVar(&o.inPlace, "in-place", false, "Take the running pods over, without a restart")
	v.Int32Var(&o.replicas, "replicas", -1, "How many pods to move: -1 moves all")
	v.Int32Var(&o.surge, "max-surge", 1, "How many pods the target may run ahead of the source")
	v.Int32Var(&o.timeout, "timeout-seconds", -1, "How long the migration may take: -1 means without a limit")
	v.DurationVar(&o.interval, "interval", o.interval, "How often to look at the workloads")
	v.BoolVar(&o.check, "check", false, "Print what an installation or a takeover of OpenKruise will change, and stop")
	v.StringVar(&o.system, "manager-namespace", o.system, "The namespace of the manager that --check looks for")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		if o.check {
			return check(c, o.system)
		}
		if o.source == "" {
			return errors.New("--src-name is required")
		}
		if o.target == "" {
			o.target = o.source
		}
		namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return err
		}
		return migration{Command: c, flags: o, namespace: namespace, clock: clock.RealClock{}}.run(args[0])
	}
	return cmd
}

// check prints what an installation or a takeover will change.
func check(c target.Command, namespace string) error {
	facts, err := preflight.Read(c, namespace, clock.RealClock{}.Now())
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, preflight.Check(facts))
	return err
}

// migration is one call of the command.
type migration struct {
	target.Command
	flags     flags
	namespace string
	clock     clock.Clock
}

func (m migration) run(to string) error {
	pair := strings.ToLower(m.flags.from) + " to " + strings.ToLower(to)
	switch pair {
	case "deployment to cloneset", "deployment to clone":
		switch {
		case m.flags.create:
			return m.createCloneSet()
		case m.flags.inPlace:
			return m.takeOver(builtIn("Deployment"), kind(kinds.CloneSet))
		default:
			return m.movePods()
		}
	case "statefulset to statefulset", "statefulset to asts", "statefulset to advancedstatefulset":
		if m.flags.target != m.flags.source {
			return fmt.Errorf("the pods of a StatefulSet have its name: --dst-name must be %s", m.flags.source)
		}
		return m.takeOver(builtIn(kinds.StatefulSet), kind(kinds.StatefulSet))
	default:
		return fmt.Errorf("migrate %s is not supported, only Deployment to CloneSet and StatefulSet to StatefulSet", pair)
	}
}

// kind returns a kind of apps.kruise.io.
func kind(name string) schema.GroupKind { return schema.GroupKind{Group: kinds.Apps, Kind: name} }

// builtIn returns a kind of apps.
func builtIn(name string) schema.GroupKind { return schema.GroupKind{Group: "apps", Kind: name} }

func (m migration) report(format string, values ...any) {
	fmt.Fprintf(m.ErrOut, format+"\n", values...)
}

// until calls a function until it is done, within the time of the flags.
func (m migration) until(what string, done func() (bool, error)) error {
	limit := time.Duration(m.flags.timeout) * time.Second
	deadline := m.clock.Now().Add(limit)
	for {
		ended, err := done()
		if err != nil || ended {
			return err
		}
		if limit >= 0 && m.clock.Now().After(deadline) {
			return fmt.Errorf("%s: %w", what, wait.ErrorInterrupted(nil))
		}
		select {
		case <-m.Context().Done():
			return m.Context().Err()
		case <-m.clock.After(m.flags.interval):
		}
	}
}
