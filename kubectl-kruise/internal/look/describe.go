package look

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/describe"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/rollout"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// NewDescribe returns the command describe of kubectl, with the subcommand rollout.
func NewDescribe(parent string, f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := describe.NewCmdDescribe(parent, f, streams)
	cmd.AddCommand(newDescribeRollout(f, streams))
	return cmd
}

func newDescribeRollout(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var all, noColor, watch bool
	var timeout int
	cmd := &cobra.Command{
		Use: "rollout NAME", Aliases: []string{"rollouts", "ro"},
		Short:   "Describe a Rollout of rollouts.kruise.io, its steps, its workload and its pods",
		Example: "  kubectl kruise describe rollout demo",
	}
	cmd.Flags().BoolVar(&all, "all", false, "Describe all Rollouts of the namespace")
	cmd.Flags().BoolVar(&noColor, "no-color", false, "Print without colors")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Watch until the Rollout is healthy")
	cmd.Flags().IntVar(&timeout, "timeout", 0, "For how many seconds to watch: 0 means without a limit")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		if !all && len(args) == 0 {
			return fmt.Errorf("a NAME or --all is required")
		}
		objects, err := c.Find(append([]string{"rollouts." + kinds.Rollouts}, args...))
		if err != nil {
			return err
		}
		color := !noColor && term.AllowsColorOutput(streams.Out)
		for _, o := range objects {
			err := rollout.Watch(c, o, time.Duration(timeout)*time.Second, func(now *unstructured.Unstructured) (bool, error) {
				if color && watch {
					fmt.Fprint(streams.Out, "\x1b[H\x1b[2J")
				}
				in, err := readRollout(c, target.Object{Unstructured: now, Info: o.Info})
				if err != nil {
					return false, err
				}
				in.Color = color
				Rollout(streams.Out, in)
				return !watch || phase(now) == "Healthy", nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// RolloutInput is a Rollout with its workload.
type RolloutInput struct {
	Rollout, Workload *unstructured.Unstructured
	Pods              []*corev1.Pod
	Now               time.Time
	Color             bool
}

func readRollout(c target.Command, o target.Object) (RolloutInput, error) {
	in := RolloutInput{Rollout: o.Unstructured, Now: clock.RealClock{}.Now()}
	kind, name, err := rollout.WorkloadRef(o.Unstructured)
	if err != nil {
		return in, nil //nolint:nilerr // it is described without a workload
	}
	workload, err := c.Get(kind.GroupKind(), o.GetNamespace(), name)
	if err != nil {
		return in, nil //nolint:nilerr // as above
	}
	in.Workload = workload.Unstructured
	in.Pods, err = pods.Of(c, workload)
	return in, err
}

func phase(o *unstructured.Unstructured) string { return field(o, "status", "phase") }

// field returns a field as text; empty where it is missing.
func field(o *unstructured.Unstructured, path ...string) string {
	v, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found {
		return ""
	}
	return fmt.Sprint(v)
}

// icon of a phase.
func icon(phase string) string {
	switch phase {
	case "Healthy":
		return "✔"
	case "Progressing", "Terminating":
		return "◌"
	case "Disabled", "Disabling":
		return "✖"
	default:
		return "⚠"
	}
}

// Rollout describes a Rollout.
func Rollout(out io.Writer, in RolloutInput) {
	o := in.Rollout
	w := printers.GetNewTabWriter(out)
	strategy, status := "canary", "canaryStatus"
	if _, found, _ := unstructured.NestedMap(o.Object, "spec", "strategy", "blueGreen"); found {
		strategy, status = "blueGreen", "blueGreenStatus"
	}
	steps, _, _ := unstructured.NestedSlice(o.Object, "spec", "strategy", strategy, "steps")
	current := field(o, "status", status, "currentStepIndex")
	fmt.Fprintf(w, "Name:\t%s\nNamespace:\t%s\nStatus:\t%s %s\n", o.GetName(), o.GetNamespace(), icon(phase(o)), phase(o))
	fmt.Fprintf(w, "Message:\t%s\nStrategy:\t%s\n", field(o, "status", "message"), strategy)
	fmt.Fprintf(w, "Step:\t%s/%d\nSteps:\n", current, len(steps))
	for i, step := range steps {
		fields, _ := step.(map[string]any)
		line := fmt.Sprintf("  %d.\treplicas %v", i+1, fields["replicas"])
		for _, key := range []string{"traffic", "matches"} {
			if v := fields[key]; v != nil {
				line += fmt.Sprintf(", %s %v", key, v)
			}
		}
		if fmt.Sprint(i+1) == current {
			line += ", state " + field(o, "status", status, "currentStepState")
			if in.Color {
				line = "\x1b[32m" + line + "\x1b[0m"
			}
		}
		fmt.Fprintln(w, line)
	}
	describeWorkload(w, in, status)
	_ = w.Flush()
	describePods(out, in)
}

func describeWorkload(w io.Writer, in RolloutInput, status string) {
	o := in.Workload
	if o == nil {
		return
	}
	if template, err := kinds.Template(o); err == nil {
		var images []string
		for _, c := range template.Spec.Containers {
			images = append(images, c.Image)
		}
		fmt.Fprintf(w, "Images:\t%s\n", strings.Join(images, ", "))
	}
	fmt.Fprintf(w, "Current Revision:\t%s\n", field(in.Rollout, "status", status, "stableRevision"))
	fmt.Fprintf(w, "Update Revision:\t%s\n", field(o, "status", "updateRevision"))
	fmt.Fprintf(w, "Replicas:\n")
	for _, row := range [][2]string{
		{"Updated", "updatedReplicas"},
		{"Current", "replicas"},
		{"Ready", "readyReplicas"},
		{"Available", "availableReplicas"},
	} {
		if row[0] == "Updated" {
			fmt.Fprintf(w, "  Desired:\t%s\n", field(o, "spec", "replicas"))
		}
		fmt.Fprintf(w, "  %s:\t%s\n", row[0], field(o, "status", row[1]))
	}
}

func describePods(out io.Writer, in RolloutInput) {
	if len(in.Pods) == 0 {
		return
	}
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "NAME\tREADY\tBATCH ID\tREVISION\tAGE\tRESTARTS\tSTATUS")
	for _, pod := range in.Pods {
		ready, restarts := 0, int32(0)
		for _, s := range pod.Status.ContainerStatuses {
			if s.Ready {
				ready++
			}
			restarts += s.RestartCount
		}
		state := string(pod.Status.Phase)
		if podutils.IsPodReady(pod) {
			state = "✔ " + state
		}
		fmt.Fprintf(w, "%s\t%d/%d\t%s\t%s\t%s\t%d\t%s\n", pod.Name, ready, len(pod.Spec.Containers),
			pod.Labels["rollouts.kruise.io/rollout-batch-id"], pod.Labels[kruise.PodRevisionLabelKey],
			duration.HumanDuration(in.Now.Sub(pod.CreationTimestamp.Time)), restarts, state)
	}
	_ = w.Flush()
}
