package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/describe"

	controller "github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/pods"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/workload/native"
	"github.com/kruisekit/kruisekit/write"
)

func isDeploymentInPlace(o *unstructured.Unstructured) bool {
	return o.GetKind() == kinds.Deployment && kinds.IsInPlace(o)
}

// undoDeployment takes a Deployment back that is rolled out in place, which kubectl refuses while it is held.
func undoDeployment(c target.Command, o target.Object, number int64) error {
	sets, err := ReplicaSets(c, o)
	if err != nil {
		return err
	}
	to, ops, err := UndoDeployment(o.Unstructured, sets, number)
	if err != nil {
		return err
	}
	if ops == nil {
		return c.Print(o.Unstructured,
			fmt.Sprintf("skipped rollback (current template already matches revision %d)", revisionOf(to)))
	}
	if dryRun, err := cmdutil.GetDryRunStrategy(c.Command); err == nil && dryRun == cmdutil.DryRunClient {
		template, err := kinds.Template(to)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		describe.DescribePodTemplate(template, describe.NewPrefixWriter(&out))
		return c.Print(o.Unstructured, "will roll back to "+out.String())
	}
	patched, err := c.Patch(o, ops, "")
	if err != nil {
		return err
	}
	return c.Print(patched, "rolled back")
}

// ReplicaSets lists the ReplicaSets of a Deployment.
func ReplicaSets(c target.Command, o target.Object) ([]*unstructured.Unstructured, error) {
	selector, err := pods.Selector(o.Unstructured)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}
	list, err := c.List(kind, o.GetNamespace(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var sets []*unstructured.Unstructured
	for i := range list {
		if metav1.IsControlledBy(&list[i], o) {
			sets = append(sets, &list[i])
		}
	}
	return sets, nil
}

// UndoDeployment returns the ReplicaSet to whose template a Deployment goes back, and the operations for that: none
// where the Deployment has the template. Number 0 means the template before the change. In the middle of a rollout in
// place that is the template of the ReplicaSet that has the pods, else that of the revision before the newest.
func UndoDeployment(
	d *unstructured.Unstructured, sets []*unstructured.Unstructured, number int64,
) (*unstructured.Unstructured, []write.Op, error) {
	to, err := backTo(d, sets, number)
	if err != nil {
		return nil, nil, err
	}
	is, err := same(d, to)
	if is || err != nil {
		return to, nil, err
	}
	template, _, err := unstructured.NestedMap(plain(to).Object, "spec", "template")
	if err != nil {
		return nil, nil, err
	}
	ops := append(write.TestUID(d), target.Unchanged(d)...)
	ops = append(ops, write.SetAnnotations(d, annotationsOf(d, to))...)
	return to, append(ops, write.Replace(write.Pointer("spec", "template"), template)), nil
}

func backTo(
	d *unstructured.Unstructured, sets []*unstructured.Unstructured, number int64,
) (*unstructured.Unstructured, error) {
	if number > 0 {
		at := slices.IndexFunc(sets, func(set *unstructured.Unstructured) bool { return revisionOf(set) == number })
		if at < 0 {
			return nil, fmt.Errorf("unable to find specified revision %d in history", number)
		}
		return sets[at], nil
	}
	if kinds.SpecPaused(d) {
		active := slices.DeleteFunc(slices.Clone(sets), func(set *unstructured.Unstructured) bool { return !hasPods(set) })
		if len(active) != 1 {
			return nil, fmt.Errorf("deployment %q is paused, and %d ReplicaSets have pods; must be 1", d.GetName(), len(active))
		}
		_, marked, _ := unstructured.NestedString(active[0].Object, "spec", "template", "metadata", "annotations",
			native.HoldKey)
		if is, err := same(d, active[0]); marked || !is || err != nil {
			return active[0], err
		}
	}
	numbered := slices.DeleteFunc(slices.Clone(sets), func(set *unstructured.Unstructured) bool {
		return revisionOf(set) == 0
	})
	slices.SortFunc(numbered, func(a, b *unstructured.Unstructured) int { return int(revisionOf(a) - revisionOf(b)) })
	if len(numbered) < 2 {
		return nil, errors.New("no rollout history found for deployment " + strconv.Quote(d.GetName()))
	}
	return numbered[len(numbered)-2], nil
}

func hasPods(set *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	have, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas")
	return wanted > 0 || have > 0
}

// revisionOf returns the number of a ReplicaSet in the history; 0 for none.
func revisionOf(set *unstructured.Unstructured) int64 {
	n, _ := strconv.ParseInt(set.GetAnnotations()[revisionKey], 10, 64)
	return n
}

const revisionKey = "deployment.kubernetes.io/revision"

// plain returns a ReplicaSet with the template as the user wrote it: without the label of the hash, and without the
// mark of a rollout in place.
func plain(set *unstructured.Unstructured) *unstructured.Unstructured {
	set = set.DeepCopy()
	at := []string{"spec", "template", "metadata"}
	unstructured.RemoveNestedField(set.Object, append(at, "labels", appsv1.DefaultDeploymentUniqueLabelKey)...)
	unstructured.RemoveNestedField(set.Object, append(at, "annotations", native.HoldKey)...)
	unstructured.RemoveNestedField(set.Object, append(at, "creationTimestamp")...)
	if left, _, _ := unstructured.NestedMap(set.Object, append(at, "annotations")...); len(left) == 0 {
		unstructured.RemoveNestedField(set.Object, append(at, "annotations")...)
	}
	return set
}

// same reports whether a Deployment has the template of a ReplicaSet.
func same(d, set *unstructured.Unstructured) (bool, error) {
	have, err := kinds.Template(d)
	if err != nil {
		return false, err
	}
	want, err := kinds.Template(plain(set))
	return err == nil && apiequality.Semantic.DeepEqual(have, want), err
}

// annotationsOf returns the annotations that change where a Deployment goes back to a ReplicaSet. As with kubectl they
// become those of the ReplicaSet, but for annotations about the object, and what asks for the rollout and reports it.
func annotationsOf(d, set *unstructured.Unstructured) map[string]*string {
	all := map[string]*string{}
	for key := range d.GetAnnotations() {
		all[key] = nil
	}
	for key, value := range set.GetAnnotations() {
		all[key] = &value
	}
	for _, key := range []string{
		corev1.LastAppliedConfigAnnotation, revisionKey, "deployment.kubernetes.io/revision-history",
		"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", appsv1.DeprecatedRollbackTo,
		native.RolloutKey, native.HoldKey, controller.StatusKey,
	} {
		delete(all, key)
	}
	return all
}
