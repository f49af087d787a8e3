package distribution

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// MaxNames bounds the namespaces that a condition lists.
	MaxNames = 1000
	// maxTexts and maxText bound the reason of a condition.
	maxTexts, maxText = 3, 300
)

type conditionType = v1beta1.ResourceDistributionConditionType

// Conditions returns the types of conditions, in the order of the status.
func Conditions() []v1beta1.ResourceDistributionConditionType {
	return []v1beta1.ResourceDistributionConditionType{
		v1beta1.ResourceDistributionGetResourceFailed, v1beta1.ResourceDistributionCreateResourceFailed,
		v1beta1.ResourceDistributionUpdateResourceFailed,
		v1beta1.ResourceDistributionDeleteResourceFailed, v1beta1.ResourceDistributionConflictOccurred,
		v1beta1.ResourceDistributionNamespaceNotExists,
	}
}

// Failure is why a namespace has no copy, or has one that it should not have.
type Failure struct {
	// Namespace is empty where the failure is about the distribution.
	Namespace string
	// Type is that of the condition.
	Type conditionType
	Text string
	// Err is the answer of the API server; nil where no request failed.
	Err error
}

func (f Failure) note() note.Note {
	return note.Note{Level: note.Blocked, Code: string(f.Type), Object: f.Namespace, Text: f.Text}
}

// Failures returns all failures, by namespace.
func (p *Pass) Failures() []Failure {
	all := slices.Clone(p.failures)
	for _, s := range p.Steps {
		switch {
		case s.Failure != nil:
			all = append(all, *s.Failure)
		case !s.Ended():
			all = append(all, Failure{Namespace: s.Namespace, Type: failing(s), Text: textSkipped})
		}
	}
	slices.SortFunc(all, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Text, b.Text))
	})
	return all
}

// failing is the condition of a step that was not tried.
func failing(s Step) conditionType {
	switch {
	case s.Action == Create:
		return v1beta1.ResourceDistributionCreateResourceFailed
	case s.Action == Inspect:
		return v1beta1.ResourceDistributionGetResourceFailed
	case s.Action == Delete && !s.target:
		return v1beta1.ResourceDistributionDeleteResourceFailed
	}
	return v1beta1.ResourceDistributionUpdateResourceFailed
}

// Err returns the failures that another try may mend; nil where there is none. A conflict and a missing namespace are
// none of these: an event ends them.
func (p *Pass) Err() error {
	var errs []error
	left := 0
	for _, f := range p.Failures() {
		if !p.retries(f) {
			continue
		}
		if len(errs) == maxTexts {
			left++
			continue
		}
		err := f.Err
		if err == nil {
			err = errors.New(f.Text)
		}
		errs = append(errs, fmt.Errorf("%s in namespace %s: %w", f.Type, f.Namespace, err))
	}
	if left > 0 {
		errs = append(errs, fmt.Errorf("%d more namespaces failed", left))
	}
	return errors.Join(errs...)
}

// retries reports whether another try may succeed without an event.
func (p *Pass) retries(f Failure) bool {
	switch {
	case f.Type == v1beta1.ResourceDistributionConflictOccurred ||
		f.Type == v1beta1.ResourceDistributionNamespaceNotExists || f.Text == textDeleting:
		return false
	case p.in.Unreadable != "" && f.Text == p.in.Unreadable:
		return true
	}
	return f.Err != nil || f.Text == textSkipped
}

// Status returns the status after the steps. A condition keeps its time while its status stays.
func (p *Pass) Status(
	old v1beta1.ResourceDistributionStatus, generation int64, now time.Time,
) v1beta1.ResourceDistributionStatus {
	failed := map[conditionType][]Failure{}
	without := map[string]bool{}
	for _, f := range p.Failures() {
		failed[f.Type] = append(failed[f.Type], f)
		if p.desired[f.Namespace] {
			without[f.Namespace] = true
		}
	}
	status := v1beta1.ResourceDistributionStatus{
		Desired: int32(len(p.desired)), Failed: int32(len(without)), ObservedGeneration: generation,
	}
	status.Succeeded = status.Desired - status.Failed
	for _, t := range Conditions() {
		c := v1beta1.ResourceDistributionCondition{
			Type: t, Status: v1beta1.ResourceDistributionConditionFalse, Reason: v1beta1.ResourceDistributionReasonSucceeded,
		}
		if all := failed[t]; len(all) > 0 {
			c.Status, c.Reason, c.FailedNamespaces = v1beta1.ResourceDistributionConditionTrue, reason(all), listed(all)
		}
		c.LastTransitionTime = metav1.NewTime(now)
		at := slices.IndexFunc(old.Conditions, func(o v1beta1.ResourceDistributionCondition) bool { return o.Type == t })
		if at >= 0 && old.Conditions[at].Status == c.Status {
			c.LastTransitionTime = old.Conditions[at].LastTransitionTime
		}
		status.Conditions = append(status.Conditions, c)
	}
	return status
}

// reason has the first texts that differ.
func reason(all []Failure) string {
	texts := map[string]bool{}
	var first []string
	for _, f := range all {
		if !texts[f.Text] && len(first) < maxTexts {
			first = append(first, brief(f.Text))
		}
		texts[f.Text] = true
	}
	if more := len(texts) - len(first); more > 0 {
		first = append(first, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(first, "; ")
}

func brief(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// listed are the namespaces of failures, sorted and bounded.
func listed(all []Failure) []string {
	names := map[string]bool{}
	for _, f := range all {
		if f.Namespace != "" {
			names[f.Namespace] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), MaxNames)]
}
