package forecast_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
)

// A budget bounds the batches of a rollout, and one without room stops the rollout.
func TestBudget(t *testing.T) {
	for name, c := range map[string]struct {
		maxUnavailable string
		change         func(*v1beta1.CloneSet)
		batches        int
		severity       forecast.Severity
		blocked        int
	}{
		"one at a time":  {"1", image("web:2"), 4, forecast.Restarts, 0},
		"room for all":   {"100%", image("web:2"), 2, forecast.Restarts, 0},
		"no room":        {"0", image("web:2"), 0, forecast.Stuck, 4},
		"with partition": {"0", all(image("web:2"), partition("3")), 0, forecast.Stuck, 1},
	} {
		t.Run(name, func(t *testing.T) {
			set := web(4)
			m := atRest(t, set)
			budget := &policyv1beta1.PodUnavailableBudget{}
			budget.Namespace, budget.Name, budget.UID = "shop", "web", "budget"
			budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			budget.Spec.MaxUnavailable = amount(c.maxUnavailable)
			budget.Status.TotalReplicas = 4
			f := forecastOf(t, m, set, forecast.Options{}, c.change, budget)
			blocked := 0
			for _, pod := range f.Pods {
				if pod.Fate == forecast.Blocked {
					blocked++
					if pod.Reason != "UpdateRefused" {
						t.Errorf("%s is blocked for %s: %s", pod.Name, pod.Reason, pod.Text)
					}
				}
			}
			if len(f.Batches) != c.batches || f.Severity != c.severity || blocked != c.blocked {
				t.Errorf("%d batches, %s, %d blocked; want %d, %s, %d", len(f.Batches), f.Severity, blocked,
					c.batches, c.severity, c.blocked)
			}
		})
	}
}

// A budget may name the Deployment, which controls the ReplicaSet of the pods.
func TestBudgetOfDeployment(t *testing.T) {
	live, objects := deploymentObjects("{}")
	budget := &policyv1beta1.PodUnavailableBudget{}
	budget.Namespace, budget.Name, budget.UID = "shop", "db", "budget"
	budget.Spec.TargetReference = &policyv1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "db"}
	budget.Spec.MaxUnavailable = amount("0")
	budget.Status.TotalReplicas = 3
	wanted := live.DeepCopy()
	wanted.Spec.Template.Spec.Containers[0].Image = "db:2"
	f, err := forecast.Of(t.Context(), forecast.Input{
		Now: created.Add(time.Hour), Live: live, Wanted: wanted, Objects: append(objects, budget),
	})
	if err != nil || len(f.Batches) != 0 || f.Severity != forecast.Stuck {
		t.Errorf("%+v, %v", f, err)
	}
}
