package rollout

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// undoRollout takes workloads back to a stored revision.
func undoRollout(c target.Command, objects []target.Object, _ []string) error {
	number, err := c.Flags().GetInt64("to-revision")
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, o := range objects {
		if o.GroupVersionKind().Group == kinds.Rollouts {
			if c.Is("fast") {
				err = fastUndo(c, o)
			} else if o, err = workloadOf(c, o); err == nil && done[string(o.GetUID())] {
				continue
			}
		}
		if err == nil && !c.Is("fast") {
			done[string(o.GetUID())] = true
			err = undoOne(c, o, number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// undoOne takes one workload back, which may be one of kubectl's.
func undoOne(c target.Command, o target.Object, number int64) error {
	if isDeploymentInPlace(o.Unstructured) {
		return undoDeployment(c, o, number)
	}
	if !kinds.IsOurs(o.GroupVersionKind().GroupKind()) {
		return undoBuiltIn(c, o, number)
	}
	stored, err := Revisions(c, o)
	if err != nil {
		return err
	}
	to, ops, err := Undo(o.Unstructured, stored, number)
	if err != nil {
		return err
	}
	if ops == nil {
		return c.Print(o.Unstructured,
			fmt.Sprintf("skipped rollback (current template already matches revision %d)", to.Revision))
	}
	if dryRun, err := cmdutil.GetDryRunStrategy(c.Command); err == nil && dryRun == cmdutil.DryRunClient {
		text, err := History(stored, to.Revision)
		if err != nil {
			return err
		}
		return c.Print(o.Unstructured, "will roll back to "+text)
	}
	patched, err := c.Patch(o, ops, "")
	if err != nil {
		return err
	}
	if kinds.Paused(patched) {
		fmt.Fprintf(c.ErrOut, "Warning: %s is paused, its pods change after kubectl kruise rollout resume.\n", o.GetName())
	}
	return c.Print(patched, "rolled back")
}

// Undo returns the revision that a workload goes back to, and the operations that replace its pod template: none where
// the template is that of the revision. Number 0 means the revision before the newest.
func Undo(
	o *unstructured.Unstructured, stored []*appsv1.ControllerRevision, number int64,
) (*appsv1.ControllerRevision, []write.Op, error) {
	var to *appsv1.ControllerRevision
	var err error
	switch {
	case number > 0:
		to, err = find(stored, number)
	case len(stored) < 2:
		err = fmt.Errorf("no last revision to roll back to")
	default:
		to = stored[len(stored)-2]
	}
	if err != nil {
		return nil, nil, err
	}
	wanted, err := revision.Decode(to.Data.Raw)
	if err != nil {
		return nil, nil, fmt.Errorf("read revision %s: %w", to.Name, err)
	}
	current, err := kinds.Template(o)
	if err != nil {
		return nil, nil, err
	}
	if revision.Same(current, wanted) {
		return to, nil, nil
	}
	var data struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(to.Data.Raw, &data); err != nil {
		return nil, nil, err
	}
	template := data.Spec.Template
	delete(template, "$patch")
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	path := write.Pointer(kinds.TemplatePath(o)...)
	return to, append(target.Unchanged(o), write.Replace(path, template)), nil
}

// undoBuiltIn takes a workload of apps back, which a Rollout names.
func undoBuiltIn(c target.Command, o target.Object, number int64) error {
	dryRun, err := cmdutil.GetDryRunStrategy(c.Command)
	if err != nil {
		return err
	}
	rollbacker, err := polymorphichelpers.RollbackerFn(c.Factory, o.Info.Mapping)
	if err != nil {
		return err
	}
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return err
	}
	result, err := rollbacker.Rollback(typed, nil, number, dryRun)
	if err != nil {
		return err
	}
	return c.Print(o.Unstructured, result)
}
