package operate

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/create"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// runKey is the label of the requests of one run.
const runKey = "kruisekit.dev/restart"

// restartFlags are the flags of restart.
type restartFlags struct {
	containers     []string
	maxUnavailable string
	unready        int64
	timeout        time.Duration
	interval       time.Duration
}

// NewRestart returns the command restart.
func NewRestart(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	flags := restartFlags{maxUnavailable: "1", unready: 3, interval: time.Second}
	cmd := &cobra.Command{
		Use:   "restart (TYPE NAME | TYPE/NAME)",
		Short: "Restart containers in place, batch by batch within a budget",
		Long: "Restart containers of running pods in place: the pods keep their names, nodes and volumes. The " +
			"kruise-daemon of the node restarts them.\n\nA pod is restarted when fewer than --max-unavailable pods are " +
			"unavailable, and when its PodUnavailableBudget has room.",
		Example: "  # Restart one container of all pods of web, two pods at a time\n" +
			"  kubectl kruise restart cloneset/web --containers=app --max-unavailable=2",
	}
	cmd.Flags().StringSliceVar(&flags.containers, "containers", nil, "The names of the containers: empty means all")
	cmd.Flags().StringVar(&flags.maxUnavailable, "max-unavailable", flags.maxUnavailable,
		"How many pods may be unavailable: a number or a percentage")
	cmd.Flags().Int64Var(&flags.unready, "unready-grace", flags.unready,
		"For how many seconds a pod is not ready before its containers stop")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", 0, "How long the restart may take: zero means without a limit")
	cmd.Flags().DurationVar(&flags.interval, "interval", flags.interval, "How often to look at the pods")
	cmdutil.AddDryRunFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		objects, err := c.Find(args)
		if err != nil {
			return err
		}
		if len(objects) != 1 {
			return fmt.Errorf("%d objects named, must be 1", len(objects))
		}
		return run{Command: c, flags: flags, id: rand.String(8), clock: clock.RealClock{}}.restart(objects[0])
	}
	return cmd
}

// run is one call of restart.
type run struct {
	target.Command
	flags restartFlags
	id    string
	clock clock.Clock
}

// restart restarts one batch after the other.
func (r run) restart(o target.Object) error {
	deadline := r.clock.Now().Add(r.flags.timeout)
	names := map[string]bool{} // the pods of the first look: those that appear later run already
	last := ""
	for first := true; ; first = false {
		b, err := r.observe(o)
		if err != nil {
			return err
		}
		b.Pods = among(b.Pods, names, first)
		if len(b.Pods) == 0 {
			return errNoPods
		}
		step, err := Next(b)
		if err != nil {
			return err
		}
		for _, pod := range step.Start {
			if err := r.start(pod); err != nil {
				return err
			}
		}
		if line := progress(step, len(b.Pods)); line != last {
			fmt.Fprintln(r.ErrOut, line)
			last = line
		}
		if step.Done || r.Text("dry-run") == "client" {
			return r.Print(o.Unstructured, "containers restarted")
		}
		if r.flags.timeout > 0 && r.clock.Now().After(deadline) {
			return fmt.Errorf("restart took longer than %s: %s", r.flags.timeout, last)
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-r.clock.After(r.flags.interval):
		}
	}
}

// among returns the pods with the names of the first look.
func among(all []*corev1.Pod, names map[string]bool, first bool) []*corev1.Pod {
	var list []*corev1.Pod
	for _, pod := range all {
		if first {
			names[pod.Name] = true
		}
		if names[pod.Name] {
			list = append(list, pod)
		}
	}
	return list
}

func progress(s Step, total int) string {
	line := fmt.Sprintf("Restart progress: %d of %d pods, %d under way", s.Finished, total, s.Running+len(s.Start))
	if len(s.Refused) > 0 {
		line += "; waits for " + strings.Join(s.Refused, ", ")
	}
	return line
}

// observe reads what Next decides upon.
func (r run) observe(o target.Object) (Batch, error) {
	b := Batch{
		MaxUnavailable: intstr.Parse(r.flags.maxUnavailable), Requests: map[string]*v1beta1.ContainerRecreateRequest{},
		Now: r.clock.Now(),
	}
	var err error
	if o.GetKind() == "Pod" {
		o, err = r.Get(schema.GroupKind{Kind: "Pod"}, o.GetNamespace(), o.GetName())
		if err != nil {
			return b, err
		}
		pod, err := kinds.Read[corev1.Pod](o.Unstructured)
		if err != nil {
			return b, err
		}
		b.Pods = []*corev1.Pod{pod}
	} else if b.Pods, err = pods.Of(r.Command, o); err != nil {
		return b, err
	}
	requests, err := r.List(schema.GroupKind{Group: kinds.Apps, Kind: "ContainerRecreateRequest"}, o.GetNamespace(),
		metav1.ListOptions{LabelSelector: runKey + "=" + r.id})
	if err != nil {
		return b, err
	}
	for i := range requests {
		request, err := kinds.ReadContainerRecreateRequest(&requests[i])
		if err != nil {
			return b, err
		}
		b.Requests[request.Spec.PodName] = request
	}
	budgets, err := r.List(schema.GroupKind{Group: kinds.Policy, Kind: "PodUnavailableBudget"}, o.GetNamespace(),
		metav1.ListOptions{})
	if err != nil || len(budgets) == 0 {
		return b, nil //nolint:nilerr // without budgets, or without the right to read them, --max-unavailable is the limit
	}
	for i := range budgets {
		budget, err := kinds.ReadBudget(&budgets[i])
		if err != nil {
			return b, err
		}
		b.Budgets = append(b.Budgets, budget)
	}
	b.Owners, err = explain.Owners(r.Command, o.Unstructured)
	if o.GetKind() != "Pod" {
		b.Owners = append([]*unstructured.Unstructured{o.Unstructured}, b.Owners...)
	}
	return b, err
}

// start asks for the restart of the containers of a pod.
func (r run) start(pod *corev1.Pod) error {
	strategy := create.DefaultStrategy()
	strategy.UnreadyGracePeriodSeconds = ptr.To(r.flags.unready)
	request, err := create.RecreateRequest(pod, r.flags.containers, strategy)
	if err != nil {
		return err
	}
	request.Labels = map[string]string{runKey: r.id}
	request.Name, request.Namespace = pod.Name+"-"+r.id, pod.Namespace
	mapping, err := r.Mapping(schema.GroupKind{Group: kinds.Apps, Kind: "ContainerRecreateRequest"})
	if err != nil {
		return err
	}
	written, err := kinds.Write(mapping.GroupVersionKind, request)
	if err != nil {
		return err
	}
	_, err = r.Create(written)
	return err
}
