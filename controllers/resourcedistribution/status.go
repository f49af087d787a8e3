package resourcedistribution

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/failure"
)

const (
	// maxNames bounds the namespaces that a condition lists.
	maxNames = 1000
	// maxTexts bounds the texts in the reason of a condition.
	maxTexts = 3
)

// The texts of failures that are not errors of the API server. Some are those of the reference.
const (
	textMissing     = "namespace not found"
	textTerminating = "namespace is terminating"
	textConflict    = "an object with the same kind and name exists, and this ResourceDistribution does not control it"
	textDeleting    = "the copy is being deleted, and a finalizer holds it"
)

var errSkipped = errors.New("not tried: requests to many other namespaces failed")

type conditionType = v1beta1.ResourceDistributionConditionType

// conditions returns the types of conditions, in the order of the status.
func conditions() []conditionType {
	return []conditionType{
		v1beta1.ResourceDistributionGetResourceFailed, v1beta1.ResourceDistributionCreateResourceFailed,
		v1beta1.ResourceDistributionUpdateResourceFailed, v1beta1.ResourceDistributionDeleteResourceFailed,
		v1beta1.ResourceDistributionConflictOccurred, v1beta1.ResourceDistributionNamespaceNotExists,
	}
}

// failed is why a namespace has no copy, or has one that it should not have.
type failed struct {
	// namespace is empty where the failure is about the distribution.
	namespace string
	condition conditionType
	text      string
	// err is what another try may mend; nil for what an event ends.
	err error
}

// failedBy returns the failure of a request; nil for no error.
func failedBy(condition conditionType, err error) *failed {
	switch {
	case err == nil:
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return &failed{condition: v1beta1.ResourceDistributionNamespaceNotExists, text: textTerminating}
	case condition == v1beta1.ResourceDistributionCreateResourceFailed && apierrors.IsNotFound(err):
		return &failed{condition: v1beta1.ResourceDistributionNamespaceNotExists, text: textMissing}
	}
	return &failed{condition: condition, text: err.Error(), err: err}
}

// failed returns the failure of the first request of a task.
func (t *task) failed(err error) *failed {
	return failedBy(map[action]conditionType{
		actionCreate:  v1beta1.ResourceDistributionCreateResourceFailed,
		actionCompare: v1beta1.ResourceDistributionGetResourceFailed,
		actionDelete:  v1beta1.ResourceDistributionDeleteResourceFailed,
	}[t.action], err)
}

// allFailures returns the failures with and without a task, by namespace.
func (p *plan) allFailures() []failed {
	all := slices.Clone(p.failures)
	for _, t := range p.tasks {
		if t.failure != nil {
			f := *t.failure
			f.namespace = t.namespace
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b failed) int { return cmp.Compare(a.namespace, b.namespace) })
	return all
}

// err returns the first of the failures that another try may mend; nil where there is none.
func (p *plan) err() error {
	all := slices.DeleteFunc(p.allFailures(), func(f failed) bool { return f.err == nil })
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	return fmt.Errorf("%s in namespace %s, of %d that failed: %w", first.condition, first.namespace, len(all), first.err)
}

// status returns the status after the tasks. A condition keeps its time while its status stays.
func (p *plan) status() v1beta1.ResourceDistributionStatus {
	failures := map[conditionType][]failed{}
	without := map[string]bool{}
	for _, f := range p.allFailures() {
		failures[f.condition] = append(failures[f.condition], f)
		if p.desired[f.namespace] {
			without[f.namespace] = true
		}
	}
	status := v1beta1.ResourceDistributionStatus{
		Desired: int32(len(p.desired)), Failed: int32(len(without)), ObservedGeneration: p.object.Generation,
	}
	status.Succeeded = status.Desired - status.Failed
	for _, t := range conditions() {
		c := conditionOf(t, failures[t])
		c.LastTransitionTime = metav1.NewTime(p.now)
		for _, old := range p.object.Status.Conditions {
			if old.Type == t && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		status.Conditions = append(status.Conditions, c)
	}
	return status
}

// conditionOf lists the first namespaces, and the first texts that differ. Failures are sorted by namespace.
func conditionOf(t conditionType, failures []failed) v1beta1.ResourceDistributionCondition {
	c := v1beta1.ResourceDistributionCondition{
		Type: t, Status: v1beta1.ResourceDistributionConditionFalse, Reason: v1beta1.ResourceDistributionReasonSucceeded,
	}
	if len(failures) == 0 {
		return c
	}
	var first []string
	texts := map[string]bool{}
	for _, f := range failures {
		if f.namespace != "" && len(c.FailedNamespaces) < maxNames {
			c.FailedNamespaces = append(c.FailedNamespaces, f.namespace)
		}
		if !texts[f.text] && len(first) < maxTexts {
			first = append(first, failure.BriefText(f.text))
		}
		texts[f.text] = true
	}
	if more := len(texts) - len(first); more > 0 {
		first = append(first, fmt.Sprintf("and %d more", more))
	}
	c.Status, c.Reason = v1beta1.ResourceDistributionConditionTrue, strings.Join(first, "; ")
	return c
}
