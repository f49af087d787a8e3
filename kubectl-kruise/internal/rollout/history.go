package rollout

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/describe"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/revision"
)

// history prints the stored revisions of workloads.
func history(c target.Command, objects []target.Object, _ []string) error {
	number, err := c.Flags().GetInt64("revision")
	if err != nil {
		return err
	}
	if number < 0 {
		return fmt.Errorf("revision must be a positive integer: %v", number)
	}
	for _, o := range objects {
		stored, err := Revisions(c, o)
		if err != nil {
			return err
		}
		if c.Text("output") != "" {
			err = printRevisions(c, stored, number)
		} else {
			err = printHistory(c, o, stored, number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func printHistory(c target.Command, o target.Object, stored []*appsv1.ControllerRevision, number int64) error {
	text, err := History(stored, number)
	if err != nil {
		return err
	}
	which := ""
	if number > 0 {
		which = fmt.Sprintf("with revision #%d", number)
	}
	return c.Print(o.Unstructured, which+"\n"+text)
}

func printRevisions(c target.Command, stored []*appsv1.ControllerRevision, number int64) error {
	if number > 0 {
		one, err := find(stored, number)
		if err != nil {
			return err
		}
		stored = []*appsv1.ControllerRevision{one}
	}
	for _, r := range stored {
		if err := c.Print(r, ""); err != nil {
			return err
		}
	}
	return nil
}

// History returns the table of stored revisions, or the pod template of one of them.
func History(stored []*appsv1.ControllerRevision, number int64) (string, error) {
	if len(stored) == 0 {
		return "No rollout history found.", nil
	}
	var out bytes.Buffer
	if number > 0 {
		r, err := find(stored, number)
		if err != nil {
			return "", err
		}
		template, err := revision.Decode(r.Data.Raw)
		if err != nil {
			return "", fmt.Errorf("read revision %s: %w", r.Name, err)
		}
		describe.DescribePodTemplate(template, describe.NewPrefixWriter(&out))
		return out.String(), nil
	}
	table := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	lines := []string{"REVISION\tCHANGE-CAUSE"}
	for _, r := range stored {
		cause := r.Annotations[polymorphichelpers.ChangeCauseAnnotation]
		if cause == "" {
			cause = "<none>"
		}
		lines = append(lines, fmt.Sprintf("%d\t%s", r.Revision, cause))
	}
	fmt.Fprintln(table, strings.Join(lines, "\n"))
	err := table.Flush()
	return out.String(), err
}

// find returns the stored revision with a number.
func find(stored []*appsv1.ControllerRevision, number int64) (*appsv1.ControllerRevision, error) {
	at := slices.IndexFunc(stored, func(r *appsv1.ControllerRevision) bool { return r.Revision == number })
	if at < 0 {
		return nil, fmt.Errorf("unable to find specified revision %d in history", number)
	}
	return stored[at], nil
}

// Revisions lists the revisions that a workload controls, the oldest first.
func Revisions(c target.Command, o target.Object) ([]*appsv1.ControllerRevision, error) {
	if !hasHistory(o.Unstructured) {
		return nil, fmt.Errorf("no history viewer has been implemented for %q", o.GroupVersionKind().GroupKind())
	}
	selector, err := pods.Selector(o.Unstructured)
	if err != nil {
		return nil, err
	}
	clients, err := c.Factory.KubernetesClientSet()
	if err != nil {
		return nil, err
	}
	list, err := clients.AppsV1().ControllerRevisions(o.GetNamespace()).List(c.Context(),
		metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	stored := revision.Complete(revision.ControlledBy(o.Unstructured, list.Items))
	slices.SortFunc(stored, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return stored, nil
}

// hasHistory reports whether an object stores revisions of one pod template.
func hasHistory(o *unstructured.Unstructured) bool {
	return kinds.Is(o, kinds.CloneSet) || kinds.Is(o, kinds.StatefulSet) || kinds.Is(o, kinds.DaemonSet)
}
