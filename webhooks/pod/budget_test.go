package pod_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// budgetOf answers with one budget, or fails.
type budgetOf struct {
	name  string
	fault error
	asked string
}

func (*budgetOf) Ready(context.Context) error { return nil }

func (b *budgetOf) Budget(_ context.Context, p *corev1.Pod) (*pub.Budget, error) {
	b.asked = p.Namespace
	if b.name == "" || b.fault != nil {
		return nil, b.fault
	}
	return &pub.Budget{Name: b.name}, nil
}

// TestBudget: a new pod gets both annotations, and nothing rejects it.
func TestBudget(t *testing.T) {
	both := map[string]string{"pub.kruise.io/related-pub": "web", "kruise.io/related-pub": "web"}
	for name, c := range map[string]struct {
		why     string
		budgets *budgetOf
		have    map[string]string
		// want are the annotations; nil where the pod stays as it is.
		want    map[string]string
		lacking int
	}{
		"guarded":   {why: "both annotations name the budget", budgets: &budgetOf{name: "web"}, want: both},
		"unguarded": {why: "a pod without a budget stays as it is", budgets: &budgetOf{}},
		"stamped":   {why: "a pod that has both stays as it is", budgets: &budgetOf{name: "web"}, have: both},
		"others": {
			why: "other annotations stay, and the name of another budget is replaced", budgets: &budgetOf{name: "web"},
			have: map[string]string{"a": "b", "kruise.io/related-pub": "old"},
			want: map[string]string{"a": "b", "pub.kruise.io/related-pub": "web", "kruise.io/related-pub": "web"},
		},
		"failure": {
			why:     "a lookup that fails rejects no pod, and is counted",
			budgets: &budgetOf{fault: errors.New("no cache")},
			lacking: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := pod.Budget(c.budgets)
			before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(c.have)}}
			got, err := step.Apply(t.Context(), pod.Request{Namespace: "shop", Pod: before})
			if err != nil || got.Lacking != c.lacking || (got.Pod != nil) != (c.want != nil) || c.budgets.asked != "shop" {
				t.Fatalf("%s: %+v, %v, asked in %q", c.why, got, err, c.budgets.asked)
			}
			if got.Pod != nil && cmp.Diff(c.want, got.Pod.Annotations) != "" || cmp.Diff(c.have, before.Annotations) != "" {
				t.Errorf("%s: %v of %v", c.why, got.Pod.Annotations, before.Annotations)
			}
		})
	}
	if got, err := pod.Budget(nil).Apply(t.Context(), pod.Request{Pod: &corev1.Pod{}}); err != nil || got.Pod != nil {
		t.Errorf("without budgets: %+v, %v", got, err)
	}
}
