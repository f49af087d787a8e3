// Package rollout adds the kinds of apps.kruise.io and rollouts.kruise.io to the commands of kubectl rollout.
//
// What a command writes is decided by pure functions: Pause, Approve, Restart, Undo and Status.
package rollout

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/rollout"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// New returns the command rollout with all of its subcommands.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := rollout.NewCmdRollout("kubectl", f, streams)
	cmd.ResetCommands()
	cmd.Long = "Manage the rollout of one or many resources: Deployments, StatefulSets and DaemonSets of apps, and " +
		"CloneSets, StatefulSets, DaemonSets, UnitedDeployments, SidecarSets and BroadcastJobs of apps.kruise.io."
	extend := func(sub *cobra.Command, run target.Run, takes func(*unstructured.Unstructured) bool) *cobra.Command {
		return target.Extend(f, streams, sub, target.Extension{Run: run, Takes: takes})
	}
	undo := rollout.NewCmdRolloutUndo("kubectl", f, streams)
	undo.Flags().Bool("fast", false, "Go back to the step without traffic that has most replicas (Rollouts only)")
	status := rollout.NewCmdRolloutStatus(f, streams)
	status.Flags().BoolP("detail", "d", false, "List the updated pods, those that are ready and those that are not")
	cmd.AddCommand(
		extend(rollout.NewCmdRolloutHistory(f, streams), history, nil),
		extend(undo, undoRollout, isDeploymentInPlace),
		extend(rollout.NewCmdRolloutPause(f, streams), each("paused", alreadyPaused, pauseOps), kinds.IsInPlace),
		extend(rollout.NewCmdRolloutResume(f, streams), each("resumed", notPaused, resumeOps), kinds.IsInPlace),
		extend(rollout.NewCmdRolloutRestart(f, streams), each("restarted", nil, restartOps(clock.RealClock{})),
			kinds.IsInPlace),
		extend(status, watchStatus, kinds.IsInPlace),
		newApprove(f, streams),
	)
	return cmd
}

// newApprove returns the command approve, which kubectl lacks.
func newApprove(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve RESOURCE",
		Short: "Approve the step that a Rollout waits at",
		Example: "  # Let the Rollout demo go on with the next step\n" +
			"  kubectl kruise rollout approve rollout/demo",
	}
	AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		objects, err := c.Find(args)
		if err != nil {
			return err
		}
		return each("approved", nil, func(o *unstructured.Unstructured) ([]write.Op, string, error) {
			ops, err := Approve(o)
			return ops, "status", err
		})(c, objects, nil)
	}
	return cmd
}

// AddFlags adds the flags that name objects and print them.
func AddFlags(cmd *cobra.Command) {
	genericclioptions.NewPrintFlags("").AddFlags(cmd)
	cmdutil.AddFilenameOptionFlags(cmd, &resource.FilenameOptions{}, "identifying the resource to get from a server.")
	selector, manager := "", ""
	cmdutil.AddLabelSelectorFlagVar(cmd, &selector)
	cmdutil.AddFieldManagerFlagVar(cmd, &manager, "kubectl-rollout")
}

// decide returns the operations of a patch and the subresource that they patch; none where there is nothing to do.
type decide func(o *unstructured.Unstructured) (ops []write.Op, subresource string, err error)

// each returns a command that patches one object after the other, and goes on after a failure. It prints the operation.
// Nothing returns the error of an object without a change.
func each(operation string, nothing func(o *unstructured.Unstructured) error, decide decide) target.Run {
	return func(c target.Command, objects []target.Object, _ []string) error {
		var errs []error
		for _, o := range objects {
			ops, subresource, err := decide(o.Unstructured)
			if err == nil && len(ops) == 0 && nothing != nil {
				err = nothing(o.Unstructured)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s %q %w", resourceName(o), o.GetName(), err))
				continue
			}
			patched, err := c.Patch(o, ops, subresource)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, c.Print(patched, operation))
		}
		return errors.Join(errs...)
	}
}

// resourceName returns the resource of an object with its group, as messages of kubectl have it.
func resourceName(o target.Object) string { return o.Info.Mapping.Resource.GroupResource().String() }
