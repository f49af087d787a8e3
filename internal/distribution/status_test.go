package distribution_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

func planned(
	t *testing.T, change func(*distribution.Input), spec v1beta1.ResourceDistributionTargets, namespaces ...string,
) *distribution.Pass {
	t.Helper()
	in := distribution.Input{Owner: me, Resource: read(t, plain), Targets: selected(t, spec), Now: at(0)}
	for _, n := range namespaces {
		in.Namespaces = append(in.Namespaces, distribution.Namespace{Name: n})
	}
	change(&in)
	return distribution.Plan(in)
}

func nothing(*distribution.Input) {}

// A condition keeps its time while its status stays, wherever it stands in the old status.
func TestConditionTimes(t *testing.T) {
	old := v1beta1.ResourceDistributionStatus{Conditions: []v1beta1.ResourceDistributionCondition{
		{
			Type:               v1beta1.ResourceDistributionNamespaceNotExists,
			Status:             "True",
			LastTransitionTime: metav1.NewTime(at(1)),
			Reason:             "other",
		},
		{Type: v1beta1.ResourceDistributionConflictOccurred, Status: "True", LastTransitionTime: metav1.NewTime(at(2))},
		{Type: v1beta1.ResourceDistributionGetResourceFailed, Status: "False", LastTransitionTime: metav1.NewTime(at(3))},
	}}
	p := planned(t, nothing, v1beta1.ResourceDistributionTargets{IncludedNamespaces: list("absent")})
	got := p.Status(old, 7, at(9))
	if got.ObservedGeneration != 7 || got.Desired != 1 || got.Succeeded != 0 || got.Failed != 1 {
		t.Errorf("the status is %+v", got)
	}
	for i, want := range []int{3, 9, 9, 9, 9, 1} {
		if c := got.Conditions[i]; !c.LastTransitionTime.Time.Equal(at(want)) {
			t.Errorf("%s changed at %v, want second %d", c.Type, c.LastTransitionTime, want)
		}
	}
	missing := got.Conditions[5]
	if diff := cmp.Diff([]string{"absent"}, missing.FailedNamespaces); diff != "" ||
		missing.Reason != "namespace not found" || missing.Status != "True" {
		t.Errorf("the condition is %+v", missing)
	}
	if again := p.Status(got, 7, at(60)); !cmp.Equal(got, again) {
		t.Errorf("the same pass changes the status (-first +second):\n%s", cmp.Diff(got, again))
	}
}

// Texts and names are bounded, and do not depend on the order of answers.
func TestStatusIsBounded(t *testing.T) {
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprintf("ns-%04d", i)
	}
	p := planned(t, nothing, v1beta1.ResourceDistributionTargets{AllNamespaces: true}, names...)
	other := planned(t, nothing, v1beta1.ResourceDistributionTargets{AllNamespaces: true}, names...)
	end := func(p *distribution.Pass, i int) {
		s := p.Steps[i]
		p.Steps[i] = p.Answer(s, nil, apierrors.NewInternalError(errors.New(s.Namespace+" %s %d "+strings.Repeat("x", 5000))))
	}
	for i := range p.Steps {
		end(p, i)
	}
	for i := range slices.Backward(other.Steps) {
		end(other, i)
	}
	slices.Reverse(other.Steps)
	status := p.Status(v1beta1.ResourceDistributionStatus{}, 1, at(0))
	if diff := cmp.Diff(status, other.Status(v1beta1.ResourceDistributionStatus{}, 1, at(0))); diff != "" {
		t.Errorf("the order of answers shows:\n%s", diff)
	}
	c := status.Conditions[1]
	if c.Type != v1beta1.ResourceDistributionCreateResourceFailed || len(c.FailedNamespaces) != distribution.MaxNames ||
		len(c.Reason) > 1200 || !strings.HasSuffix(c.Reason, "; and 2997 more") {
		t.Errorf("%d names, reason %q", len(c.FailedNamespaces), c.Reason)
	}
	if status.Failed != 3000 {
		t.Errorf("%d failed", status.Failed)
	}
	if err := p.Err(); err == nil || len(err.Error()) > 20000 || !strings.Contains(err.Error(), "2997 more") {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// What cannot be distributed or observed is in the status, and nothing is written.
func TestNothingCanBeDone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*distribution.Input)
		want   v1beta1.ResourceDistributionConditionType
		reason string
		counts [2]int32 // desired, failed
		retry  bool
	}{
		"no resource": {
			change: func(in *distribution.Input) { in.Resource, in.Invalid = nil, "spec.resource: bad" },
			want:   v1beta1.ResourceDistributionCreateResourceFailed,
			reason: "spec.resource: bad",
			counts: [2]int32{2, 2},
		},
		"no targets": {
			change: func(in *distribution.Input) { in.Targets, in.Invalid = nil, "spec.targets: bad" },
			want:   v1beta1.ResourceDistributionGetResourceFailed,
			reason: "spec.targets: bad",
			counts: [2]int32{},
		},
		"no permission": {
			change: func(in *distribution.Input) { in.Unreadable = "secrets is forbidden" },
			want:   v1beta1.ResourceDistributionGetResourceFailed,
			reason: "secrets is forbidden",
			counts: [2]int32{2, 2},
			retry:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := planned(t, c.change, v1beta1.ResourceDistributionTargets{AllNamespaces: true}, "a", "b")
			status := p.Status(v1beta1.ResourceDistributionStatus{}, 1, at(0))
			if len(p.Steps) > 0 || [2]int32{status.Desired, status.Failed} != c.counts || (p.Err() != nil) != c.retry {
				t.Errorf("steps %v, status %+v, error %v", p.Steps, status, p.Err())
			}
			for _, condition := range status.Conditions {
				if failed := condition.Type == c.want; failed != (condition.Status == "True") ||
					failed && condition.Reason != c.reason {
					t.Errorf("the condition is %+v", condition)
				}
			}
		})
	}
}
