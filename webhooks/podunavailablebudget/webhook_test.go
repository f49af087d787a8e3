package podunavailablebudget_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/podunavailablebudget"
)

// shelf has a budget of the namespace shop.
type shelf struct {
	name, app string
	fault     error
}

func (s shelf) Objects(_ context.Context, namespace string) ([]*policyv1beta1.PodUnavailableBudget, error) {
	if namespace != "shop" || s.name == "" {
		return nil, s.fault
	}
	b := &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: s.name}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.app}}
	return []*policyv1beta1.PodUnavailableBudget{b}, nil
}

const (
	good = `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}}`
	// operations and total are the paths of what v1alpha1 has in annotations.
	operations = "metadata.annotations[kruise.io/pub-protect-operations]"
	total      = "metadata.annotations[pub.kruise.io/protect-total-replicas]"
)

// What exactly is invalid is tested in package pub.
func TestValidate(t *testing.T) {
	annotated := func(operations, total string) string {
		return `{"metadata":{"name":"a","annotations":{"kruise.io/pub-protect-operations":"` + operations +
			`","pub.kruise.io/protect-total-replicas":"` + total +
			`"}},"spec":{"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}}`
	}
	old, hub := plaintest.Versions()[:1], plaintest.Versions()[1:]
	for name, c := range map[string]struct {
		why, now, stored string
		versions         []string
		others           shelf
		off, elsewhere   bool
		want             plaintest.Want
	}{
		"good": {why: "a budget with a selector and an amount", now: good},
		"annotations": {
			why: "v1alpha1 has fields as annotations", versions: old, now: annotated("DELETE, EVICT", "15"),
		},
		"malformed annotations": {
			why: "each has one fault", versions: old, now: annotated("BOGUS", "not-a-number"),
			want: plaintest.Want{Code: 400, Paths: total + " " + operations},
		},
		"ignored annotations": {
			why: "v1beta1 has a field for operations", versions: hub, now: annotated("BOGUS", "15"),
		},
		"nothing": {
			why: "all faults are reported at once", now: `{"spec":{}}`,
			want: plaintest.Want{Code: 400, Paths: "spec.selector, targetRef spec.maxUnavailable, minAvailable"},
		},
		"overlap": {
			why: "two budgets must not select the same pods", now: good, others: shelf{name: "b", app: "web"},
			want: plaintest.Want{Code: 400, Paths: "spec.selector"},
		},
		"itself": {why: "a budget does not overlap with itself", now: good, others: shelf{name: "a", app: "web"}},
		"other namespace": {
			why: "its budgets do not count", now: good, elsewhere: true,
			others: shelf{name: "b", app: "web"},
		},
		"a stored overlap": {
			why: "the stored budget has it", now: good, stored: good, others: shelf{name: "b", app: "web"},
			want: plaintest.Want{Warnings: 1},
		},
		"other selector": {
			why: "an update cannot change the pods", now: good, stored: strings.Replace(good, "web", "db", 1),
			want: plaintest.Want{Code: 400, Paths: "spec.selector, targetRef"},
		},
		"other amount": {why: "it can change", now: strings.Replace(good, ":1}", `:"20%"}`, 1), stored: good},
		"too large": {
			why: "an amount beyond 32 bits is no amount", now: strings.Replace(good, ":1}", ":99999999999}", 1),
			want: plaintest.Want{Code: 400, Paths: "spec.maxUnavailable"},
		},
		"off": {
			why: "with both gates off no budget is heeded", now: good, off: true,
			want: plaintest.Want{
				Code: 400, Text: "feature gates PodUnavailableBudgetDeleteGate and PodUnavailableBudgetUpdateGate are off",
			},
		},
		"no list": {
			why: "where the others are unknown there is no answer", now: good, others: shelf{fault: errors.New("no cache")},
			want: plaintest.Want{Code: 500},
		},
	} {
		if c.versions == nil {
			c.versions = plaintest.Versions()
		}
		for _, version := range c.versions {
			t.Run(name+"/"+version, func(t *testing.T) {
				w, err := podunavailablebudget.New(c.others, podunavailablebudget.Options{Off: c.off})
				if err != nil {
					t.Fatal(err)
				}
				kind := schema.GroupKind{Group: "policy.kruise.io", Kind: "PodUnavailableBudget"}
				r := plaintest.Request(kind, version, c.now, c.stored)
				if c.elsewhere {
					r.Namespace = "other"
				}
				plaintest.Answers(t, c.why, c.want, w[podunavailablebudget.Path](t.Context(), r))
			})
		}
	}
	if _, err := podunavailablebudget.New(nil, podunavailablebudget.Options{}); err == nil {
		t.Error("no error without a reader of budgets")
	}
}
