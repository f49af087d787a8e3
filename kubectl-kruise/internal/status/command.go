package status

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/rollout"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// New returns the command status.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	limit := 10
	cmd := &cobra.Command{
		Use:   "status (TYPE NAME | TYPE/NAME)",
		Short: "Show how far rollouts are, why they stand still, and the pods concerned",
		Example: "  # Why does the rollout of web stand still?\n" +
			"  kubectl kruise status cloneset/web",
	}
	addFlags(cmd, &limit)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		objects, err := c.Find(args)
		if err != nil {
			return err
		}
		for _, o := range objects {
			r, err := read(c, o)
			if err != nil {
				return err
			}
			var page bytes.Buffer
			r.Print(&page, limit)
			fmt.Fprint(streams.Out, painter(streams)(page.String()))
		}
		return nil
	}
	return cmd
}

// NewWatch returns the command watch.
func NewWatch(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	limit := 10
	cmd := &cobra.Command{
		Use:   "watch (TYPE NAME | TYPE/NAME)",
		Short: "Follow a rollout until it is done: live on a terminal, by lines elsewhere",
		Example: "  # Follow the rollout of web\n" +
			"  kubectl kruise watch cloneset/web",
	}
	addFlags(cmd, &limit)
	timeout := cmd.Flags().Duration("timeout", 0, "How long to follow the rollout: zero means until it is done")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		objects, err := c.Find(args)
		if err != nil {
			return err
		}
		if len(objects) != 1 {
			return fmt.Errorf("%d objects named, must be 1", len(objects))
		}
		show := lines(streams, limit)
		if (term.TTY{Out: streams.Out}).IsTerminalOut() {
			show = live(streams, limit)
		}
		o := objects[0]
		return rollout.Watch(c, o, *timeout, func(now *unstructured.Unstructured) (bool, error) {
			r, err := read(c, target.Object{Unstructured: now, Info: o.Info})
			if err != nil {
				return false, err
			}
			show(r)
			return r.Done, r.Failed
		})
	}
	return cmd
}

// live redraws the report on a terminal.
func live(streams genericiooptions.IOStreams, limit int) func(Report) {
	fmt.Fprint(streams.Out, "\x1b[2J")
	colour := painter(streams)
	return func(r Report) {
		var page bytes.Buffer
		r.Print(&page, limit)
		// Home, each line to its end, and what is left of an older page.
		fmt.Fprint(streams.Out, "\x1b[H"+strings.ReplaceAll(colour(page.String()), "\n", "\x1b[K\n")+"\x1b[J")
	}
}

// lines prints the lines of the report that the report before did not have.
func lines(streams genericiooptions.IOStreams, limit int) func(Report) {
	before := map[string]bool{}
	return func(r Report) {
		var page bytes.Buffer
		r.Print(&page, limit)
		now := map[string]bool{}
		for line := range strings.Lines(page.String()) {
			if now[line] = true; !before[line] {
				fmt.Fprint(streams.Out, line)
			}
		}
		before = now
	}
}

func addFlags(cmd *cobra.Command, limit *int) {
	cmdutil.AddFilenameOptionFlags(cmd, &resource.FilenameOptions{}, "identifying the resource to get from a server.")
	selector := ""
	cmdutil.AddLabelSelectorFlagVar(cmd, &selector)
	cmd.Flags().IntVar(limit, "pods", *limit, "How many pods to list: 0 lists all")
}

// read reads what the report of an object needs.
func read(c target.Command, o target.Object) (Report, error) {
	in := Input{Object: o.Unstructured, Now: clock.RealClock{}.Now()}
	if _, err := pods.Selector(o.Unstructured); err == nil && !kinds.Is(o.Unstructured, kinds.SidecarSet) {
		if in.Pods, err = pods.Of(c, o); err != nil {
			return Report{}, err
		}
	}
	clients, err := c.Factory.KubernetesClientSet()
	if err != nil {
		return Report{}, err
	}
	warnings := metav1.ListOptions{FieldSelector: "type=Warning"}
	events, err := clients.CoreV1().Events(o.GetNamespace()).List(c.Context(), warnings)
	if err == nil { // events are worth a look, and not worth a failure
		in.Events = about(events.Items, o.GetUID(), in.Pods)
	}
	return Of(in), nil
}

// about returns the events about an object and its pods.
func about(events []corev1.Event, uid types.UID, own []*corev1.Pod) []corev1.Event {
	of := map[types.UID]bool{uid: true}
	for _, pod := range own {
		of[pod.UID] = true
	}
	var list []corev1.Event
	for _, e := range events {
		if of[e.InvolvedObject.UID] {
			list = append(list, e)
		}
	}
	return list
}
