package operate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/rollout"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// pausedKey is the annotation of what pause-all has paused: only that is resumed.
const pausedKey = "kruisekit.dev/paused-by-pause-all"

// NewPauseAll returns the command pause-all.
func NewPauseAll(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var everywhere, resume bool
	cmd := &cobra.Command{
		Use:   "pause-all",
		Short: "Pause the rollouts of all workloads of a namespace, or of the cluster",
		Long: "Pause the rollouts of all CloneSets, StatefulSets and DaemonSets of apps.kruise.io, and of SidecarSets with " +
			"--all-namespaces. With --resume, what an earlier pause-all has paused goes on, and what was paused before " +
			"stays so.",
		Example: "  # Stop all rollouts of the cluster, and let them go on\n" +
			"  kubectl kruise pause-all -A\n  kubectl kruise pause-all -A --resume",
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "In all namespaces, and SidecarSets too")
	cmd.Flags().BoolVar(&resume, "resume", false, "Resume what pause-all has paused")
	cmdutil.AddDryRunFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return pauseAll(target.Command{Command: cmd, IOStreams: streams, Factory: f}, everywhere, resume)
	}
	return cmd
}

func pauseAll(c target.Command, everywhere, resume bool) error {
	namespace, _, err := c.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	all := []string{kinds.CloneSet, kinds.StatefulSet, kinds.DaemonSet}
	if everywhere {
		namespace, all = "", append(all, kinds.SidecarSet)
	}
	operation := map[bool]string{false: "paused", true: "resumed"}[resume]
	var errs []error
	for _, kind := range all {
		mapping, err := c.Mapping(schema.GroupKind{Group: kinds.Apps, Kind: kind})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		items, err := c.List(mapping.GroupVersionKind.GroupKind(), namespace, metav1.ListOptions{})
		if err != nil {
			errs = append(errs, fmt.Errorf("list %s: %w", mapping.Resource.Resource, err))
			continue
		}
		for i := range items {
			o := &items[i]
			ops := PauseAll(o, resume)
			if ops == nil {
				continue
			}
			errs = append(errs, patchOne(c, o, ops, operation))
		}
	}
	return errors.Join(errs...)
}

func patchOne(c target.Command, o *unstructured.Unstructured, ops []write.Op, operation string) error {
	object, err := c.At(o.GroupVersionKind().GroupKind(), o)
	if err != nil {
		return err
	}
	patched, err := c.Patch(object, ops, "")
	if err != nil {
		return err
	}
	return c.Print(patched, operation)
}

// PauseAll returns the operations that pause an object and mark it, or that resume a marked one: none where there is
// nothing to do.
func PauseAll(o *unstructured.Unstructured, resume bool) []write.Op {
	_, marked := o.GetAnnotations()[pausedKey]
	if resume {
		if !marked {
			return nil
		}
		ops, _ := rollout.Pause(o, false)
		return append(write.SetAnnotations(o, map[string]*string{pausedKey: nil}), ops...)
	}
	ops, err := rollout.Pause(o, true)
	if err != nil || ops == nil {
		return nil
	}
	yes := "true"
	return append(write.SetAnnotations(o, map[string]*string{pausedKey: &yes}), ops...)
}
