package operate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
)

// Pull is what the flags of pull describe.
type Pull struct {
	Image       string
	Nodes       []string
	Selector    string
	Pods        string
	Parallelism string
	Timeout     time.Duration
	Secrets     []string
	Keep        time.Duration
}

// NewPull returns the command pull.
func NewPull(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	p := Pull{Parallelism: "10", Timeout: 10 * time.Minute, Keep: 10 * time.Minute}
	wait := true
	interval := time.Second
	cmd := &cobra.Command{
		Use:   "pull IMAGE",
		Short: "Pull an image to nodes before it is needed, and show the progress of each node",
		Example: "  # Pull an image to all nodes\n  kubectl kruise pull app:2\n\n" +
			"  # Pull it to the nodes that run pods of web\n  kubectl kruise pull app:2 --pods=app=web",
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&p.Nodes, "nodes", nil, "The names of the nodes")
	flags.StringVarP(&p.Selector, "selector", "l", "", "Selector (label query) of the nodes")
	flags.StringVar(&p.Pods, "pods", "", "Selector (label query) of pods: their nodes get the image")
	flags.StringVar(&p.Parallelism, "parallelism", p.Parallelism,
		"How many nodes pull at a time: a number or a percentage")
	flags.DurationVar(&p.Timeout, "timeout", p.Timeout, "How long one attempt of a node may take")
	flags.StringSliceVar(&p.Secrets, "pull-secrets", nil, "The names of pull secrets in the namespace")
	flags.DurationVar(&p.Keep, "keep", p.Keep, "How long the job stays after it has finished")
	flags.BoolVar(&wait, "wait", wait, "Wait until all nodes have the image")
	flags.DurationVar(&interval, "interval", interval, "How often to look at the nodes")
	cmdutil.AddDryRunFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		p.Image = args[0]
		job, err := startPull(c, p)
		if err != nil || !wait || c.Text("dry-run") != "none" {
			return err
		}
		return follow(c, job, interval, clock.RealClock{})
	}
	return cmd
}

func startPull(c target.Command, p Pull) (*unstructured.Unstructured, error) {
	job, err := PullJob(p)
	if err != nil {
		return nil, err
	}
	mapping, err := c.Mapping(schema.GroupKind{Group: kinds.Apps, Kind: "ImagePullJob"})
	if err != nil {
		return nil, err
	}
	written, err := kinds.Write(mapping.GroupVersionKind, job)
	if err != nil {
		return nil, err
	}
	namespace, _, err := c.Factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	written.SetNamespace(namespace)
	created, err := c.Create(written)
	if err != nil {
		return nil, err
	}
	return created, c.Print(created, "created")
}

// PullJob returns the job that pulls an image.
func PullJob(p Pull) (*v1beta1.ImagePullJob, error) {
	if _, err := imagepull.Parse(p.Image); err != nil {
		return nil, err
	}
	if p.Pods != "" && (p.Selector != "" || len(p.Nodes) > 0) {
		return nil, errors.New("--pods excludes --nodes and --selector")
	}
	job := &v1beta1.ImagePullJob{}
	job.GenerateName = "pull-"
	job.Spec.Image = p.Image
	job.Spec.PullSecrets = p.Secrets
	job.Spec.Parallelism = ptr.To(intstr.Parse(p.Parallelism))
	job.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: ptr.To(int32(min(p.Timeout, time.Hour).Seconds()))}
	job.Spec.CompletionPolicy = v1beta1.CompletionPolicy{
		Type: v1beta1.Always, TTLSecondsAfterFinished: ptr.To(int32(min(p.Keep, 24*time.Hour).Seconds())),
	}
	if p.Selector != "" || len(p.Nodes) > 0 {
		selector, err := metav1.ParseToLabelSelector(p.Selector)
		if err != nil {
			return nil, err
		}
		job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: p.Nodes, LabelSelector: *selector}
	}
	if p.Pods != "" {
		selector, err := metav1.ParseToLabelSelector(p.Pods)
		if err != nil {
			return nil, err
		}
		job.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{LabelSelector: *selector}
	}
	return job, nil
}

// follow shows the progress of a job until it has finished.
func follow(c target.Command, o *unstructured.Unstructured, interval time.Duration, timer clock.Clock) error {
	live := (term.TTY{Out: c.ErrOut}).IsTerminalOut()
	last := ""
	for {
		now, err := c.Get(o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
		if err != nil {
			return err
		}
		job, err := kinds.ReadImagePullJob(now.Unstructured)
		if err != nil {
			return err
		}
		nodes, err := nodesOf(c, job)
		if err != nil {
			return err
		}
		var page strings.Builder
		printPull(&page, job, nodes, live)
		if text := page.String(); text != last {
			if live && last != "" {
				fmt.Fprintf(c.ErrOut, "\x1b[%dF\x1b[J", strings.Count(last, "\n"))
			}
			fmt.Fprint(c.ErrOut, text)
			last = text
		}
		if job.Status.CompletionTime != nil {
			if job.Status.Failed > 0 {
				return fmt.Errorf("pull %s: %d nodes failed: %s", job.Spec.Image, job.Status.Failed,
					strings.Join(job.Status.FailedNodes, ", "))
			}
			return nil
		}
		select {
		case <-c.Context().Done():
			return c.Context().Err()
		case <-timer.After(interval):
		}
	}
}

// NodePull is how far a node is.
type NodePull struct {
	Node     string
	Phase    v1beta1.ImagePullPhase
	Progress int32
	Message  string
}

// nodesOf reads how far the nodes of a job are: none where NodeImages cannot be read.
func nodesOf(c target.Command, job *v1beta1.ImagePullJob) ([]NodePull, error) {
	items, err := c.List(schema.GroupKind{Group: kinds.Apps, Kind: "NodeImage"}, "", metav1.ListOptions{})
	if err != nil {
		return nil, nil //nolint:nilerr // the job has the sums
	}
	var images []*v1beta1.NodeImage
	for i := range items {
		image, err := kinds.ReadNodeImage(&items[i])
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	return Progress(job, images)
}

// Progress returns how far the nodes of a job are, by name.
func Progress(job *v1beta1.ImagePullJob, images []*v1beta1.NodeImage) ([]NodePull, error) {
	ref, err := imagepull.Parse(job.Spec.Image)
	if err != nil {
		return nil, err
	}
	var nodes []NodePull
	for _, image := range images {
		wanted := slices.ContainsFunc(image.Spec.Images[ref.Name].Tags, func(t v1beta1.ImageTagSpec) bool {
			return t.Tag == ref.Tag
		})
		if !wanted {
			continue
		}
		n := NodePull{Node: image.Name, Phase: v1beta1.ImagePhaseWaiting}
		for _, tag := range image.Status.ImageStatuses[ref.Name].Tags {
			if tag.Tag == ref.Tag {
				n.Phase, n.Progress, n.Message = tag.Phase, tag.Progress, tag.Message
			}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b NodePull) int { return cmp.Compare(a.Node, b.Node) })
	return nodes, nil
}

// printPull writes the sums of a job, and on a terminal the progress of each node.
func printPull(out io.Writer, job *v1beta1.ImagePullJob, nodes []NodePull, each bool) {
	s := job.Status
	fmt.Fprintf(out, "Pull of %s: %d of %d nodes succeeded, %d active, %d failed\n", job.Spec.Image, s.Succeeded,
		s.Desired, s.Active, s.Failed)
	for _, n := range nodes {
		if each || n.Phase == v1beta1.ImagePhaseFailed {
			done := min(max(int(n.Progress), 0), 100) / 5
			if n.Phase == v1beta1.ImagePhaseSucceeded {
				done = 20
			}
			fmt.Fprintf(out, "  %s %s%s %s %s\n", n.Node, strings.Repeat("█", done), strings.Repeat("·", 20-done), n.Phase,
				n.Message)
		}
	}
}
