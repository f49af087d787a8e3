package explain

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// New returns the command explain.
func New(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain (POD | pod/NAME)",
		Short: "Explain which objects touch a pod, and why it is not ready, not updated or not evicted",
		Example: "  # Why does this pod still run the older image?\n" +
			"  kubectl kruise explain pod/web-abcde",
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := target.Command{Command: cmd, IOStreams: streams, Factory: f}
		o, err := c.NamedPod(args[0])
		if err != nil {
			return err
		}
		sections, err := Of(c, o)
		if err != nil {
			return err
		}
		return write(streams.Out, sections)
	}
	return cmd
}

// Of explains a pod of the cluster.
func Of(c target.Command, pod target.Object) ([]Section, error) {
	in, err := observe(c, pod)
	if err != nil {
		return nil, err
	}
	return Pod(in, clock.RealClock{}.Now()), nil
}

// Input is a pod and the objects that may touch it.
type Input struct {
	Pod       *corev1.Pod
	Namespace *corev1.Namespace
	// Owners of the pod, its controller first.
	Owners []*unstructured.Unstructured
	// Lists are the objects of our kinds.
	SidecarSets, Budgets, Requests, Probes []unstructured.Unstructured
	DisruptionBudgets                      []policyv1.PodDisruptionBudget
	// Unread are the kinds that could not be listed.
	Unread []string
}

// Section is a part of an explanation.
type Section struct {
	Title string   `json:"title"`
	Lines []string `json:"lines,omitempty"`
}

// Pod explains a pod.
func Pod(in Input, now time.Time) []Section {
	pod := in.Pod
	head := fmt.Sprintf("Pod %s/%s on node %q, phase %s, state %s", pod.Namespace, pod.Name, pod.Spec.NodeName,
		pod.Status.Phase, lifecycle.StateOf(pod))
	var touch []string
	for _, o := range in.Owners {
		touch = append(touch, o.GetKind()+" "+o.GetName()+" owns it")
	}
	var sets []*v1beta1.SidecarSet
	for i := range in.SidecarSets {
		if set, err := kinds.ReadSidecarSet(&in.SidecarSets[i]); err == nil {
			sets = append(sets, set)
		}
	}
	touch = append(touch, Sidecars(pod, in.Namespace, sets)...)
	touch = append(touch, Marks(pod)...)
	touch = append(touch, Requests(pod, in.Requests)...)
	touch = append(touch, Selecting(pod, in.Probes)...)
	return []Section{
		{Title: head},
		{Title: "Touched by", Lines: touch},
		{Title: "Not ready", Lines: NotReady(pod)},
		notUpdated(in),
		{Title: "Evictions", Lines: Eviction(in, now)},
		{Title: "Not read, for lack of rights or of the kind", Lines: in.Unread},
	}
}

func notUpdated(in Input) Section {
	for _, o := range in.Owners {
		s, is, err := kinds.StrategyOf(o)
		switch {
		case !is:
			continue
		case err != nil:
			return Section{Title: "Not updated", Lines: []string{err.Error()}}
		default:
			title := fmt.Sprintf("Not updated from %s to %s", RevisionOf(in.Pod), s.UpdateRevision)
			return Section{Title: title, Lines: NotUpdated(s, in.Pod)}
		}
	}
	return Section{Title: "Not updated"}
}

func write(out io.Writer, sections []Section) error {
	for i, s := range sections {
		if i > 0 && len(s.Lines) == 0 {
			continue
		}
		if i > 0 {
			s.Title += ":"
		}
		if _, err := fmt.Fprintln(out, s.Title); err != nil {
			return err
		}
		for _, line := range s.Lines {
			if _, err := fmt.Fprintln(out, "  "+line); err != nil {
				return err
			}
		}
	}
	return nil
}

// observe reads what Pod needs. Lists that the user may not read are left out.
func observe(c target.Command, o target.Object) (Input, error) {
	pod, err := kinds.Read[corev1.Pod](o.Unstructured)
	if err != nil {
		return Input{}, err
	}
	in := Input{Pod: pod, Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace}}}
	if in.Owners, err = Owners(c, o.Unstructured); err != nil {
		return in, err
	}
	clients, err := c.Factory.KubernetesClientSet()
	if err != nil {
		return in, err
	}
	if namespace, err := clients.CoreV1().Namespaces().Get(c.Context(), pod.Namespace, metav1.GetOptions{}); err == nil {
		in.Namespace = namespace
	}
	budgets := clients.PolicyV1().PodDisruptionBudgets(pod.Namespace)
	if list, err := budgets.List(c.Context(), metav1.ListOptions{}); err == nil {
		in.DisruptionBudgets = list.Items
	}
	for _, list := range []struct {
		group, kind, namespace string
		into                   *[]unstructured.Unstructured
	}{
		{kinds.Apps, kinds.SidecarSet, "", &in.SidecarSets},
		{kinds.Policy, "PodUnavailableBudget", pod.Namespace, &in.Budgets},
		{kinds.Apps, "ContainerRecreateRequest", pod.Namespace, &in.Requests},
		{kinds.Apps, "PodProbeMarker", pod.Namespace, &in.Probes},
	} {
		items, err := c.List(schema.GroupKind{Group: list.group, Kind: list.kind}, list.namespace, metav1.ListOptions{})
		if err != nil {
			in.Unread = append(in.Unread, fmt.Sprintf("%s: %v", list.kind, err))
			continue
		}
		*list.into = items
	}
	return in, nil
}

// Owners reads the controller of an object, the controller of that, and so on.
func Owners(c target.Command, o *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var owners []*unstructured.Unstructured
	for range 5 {
		ref := metav1.GetControllerOf(o)
		if ref == nil {
			break
		}
		kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
		owner, err := c.Get(kind.GroupKind(), o.GetNamespace(), ref.Name)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return owners, errors.Join(fmt.Errorf("read owner %s %s", ref.Kind, ref.Name), err)
		}
		owners, o = append(owners, owner.Unstructured), owner.Unstructured
	}
	return owners, nil
}
