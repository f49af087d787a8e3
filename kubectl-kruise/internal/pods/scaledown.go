package pods

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// NewScaleDown returns the command scaledown.
func NewScaleDown(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var names string
	cmd := &cobra.Command{
		Use:   "scaledown (CLONESET NAME | CLONESET/NAME) --pods=pod1,pod2",
		Short: "Scale a CloneSet down by chosen pods",
		Example: "  # Delete two pods, and do not replace them\n" +
			"  kubectl kruise scaledown cloneset/web --pods web-abcde,web-fghij",
	}
	cmd.Flags().StringVar(&names, "pods", "", "Names of the pods to delete, separated by commas")
	cmdutil.AddDryRunFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return scaleDown(target.Command{Command: cmd, IOStreams: streams, Factory: f}, args, names)
	}
	return cmd
}

func scaleDown(c target.Command, args []string, names string) error {
	objects, err := c.Find(args)
	if err != nil {
		return err
	}
	if len(objects) != 1 || !kinds.Is(objects[0].Unstructured, kinds.CloneSet) {
		return errors.New("currently only supported CloneSet selective pods deletion, one at a time")
	}
	o := objects[0]
	own, err := Of(c, o)
	if err != nil {
		return err
	}
	chosen, ops, err := ScaleDown(o.Unstructured, own, strings.Split(names, ","))
	if err != nil {
		return err
	}
	patched, err := c.Patch(o, ops, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "# %s delete pods %v successfully\n", o.GetName(), chosen)
	return c.Print(patched, "selective pod deletion")
}

// ScaleDown returns the pods that a CloneSet is to delete, each once, and the operations that make the CloneSet smaller
// by them. A name that is no pod of the CloneSet is an error.
func ScaleDown(o *unstructured.Unstructured, own []*corev1.Pod, names []string) ([]string, []write.Op, error) {
	set, err := kinds.ReadCloneSet(o)
	if err != nil {
		return nil, nil, err
	}
	listed := set.Spec.ScaleStrategy.PodsToDelete
	var chosen, added []string
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" || slices.Contains(chosen, name) {
			continue
		}
		at := slices.IndexFunc(own, func(p *corev1.Pod) bool { return p.Name == name })
		switch {
		case at < 0:
			return nil, nil, fmt.Errorf("pod %q is no pod of cloneset %q", name, o.GetName())
		case own[at].DeletionTimestamp != nil:
			return nil, nil, fmt.Errorf("pod %q terminates already", name)
		}
		chosen = append(chosen, name)
		if !slices.Contains(listed, name) {
			added = append(added, name)
		}
	}
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	switch {
	case len(chosen) == 0:
		return nil, nil, errors.New("no pods named, see --pods")
	case len(added) == 0:
		return nil, nil, fmt.Errorf("cloneset %q deletes %v already", o.GetName(), chosen)
	case int(replicas) < len(added):
		return nil, nil, fmt.Errorf("cloneset %q has %d replicas, fewer than the %d pods named", o.GetName(), replicas,
			len(added))
	}
	ops := target.Unchanged(o)
	ops = append(ops, target.Set(o, append(slices.Clone(listed), added...), "spec", "scaleStrategy", "podsToDelete")...)
	return chosen, append(ops, target.Set(o, int64(replicas)-int64(len(added)), "spec", "replicas")...), nil
}
