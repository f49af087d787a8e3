package pub_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
)

func load(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile("../test/compat/testdata/recorded/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// The status that a running reference wrote is the one that is computed of the pods that it saw: a takeover writes
// none.
func TestRecordedStatuses(t *testing.T) {
	n := 0
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		var budgets policyv1beta1.PodUnavailableBudgetList
		var older policyv1alpha1.PodUnavailableBudgetList
		var pods corev1.PodList
		load(t, step+"/podunavailablebudgets.v1beta1.yaml", &budgets)
		load(t, step+"/podunavailablebudgets.v1alpha1.yaml", &older)
		load(t, step+"/pods.yaml", &pods)
		for i := range older.Items {
			var hub policyv1beta1.PodUnavailableBudget
			if err := older.Items[i].ConvertTo(&hub); err != nil {
				t.Fatal(err)
			}
			budgets.Items = append(budgets.Items, hub)
		}
		for i := range budgets.Items {
			o := &budgets.Items[i]
			b, notes := pub.Read(o)
			if faults := pub.Validate(o, nil); len(faults) > 0 || len(notes) > 0 || b.Target == nil {
				t.Fatalf("%s: faults %v, notes %v", step, faults, notes)
			}
			guarded := &pub.Counts{}
			for j := range pods.Items {
				pod := &pods.Items[j]
				owner := metav1.GetControllerOf(pod)
				if owner == nil || !strings.HasPrefix(owner.Name, b.Target.Name+"-") {
					continue
				}
				set := pub.Target{Group: "apps", Kind: owner.Kind, Name: owner.Name}
				if m := pub.Match(pod, pub.Chain{set, *b.Target}, []pub.Budget{b}); m == nil || pub.Stamp(pod) != m.Name {
					t.Errorf("%s: pod %s has the stamp %q", step, pod.Name, pub.Stamp(pod))
				}
				guarded.Set(pod, pub.Policy{})
				n++
			}
			r := pub.Recount(pub.Input{Budget: b, Counts: guarded, Total: pub.Total{Replicas: 3}, Now: at(0)})
			if diff := cmp.Diff(o.Status, r.Status); diff != "" || r.Changed {
				t.Errorf("%s: (-reference +ours):\n%s", step, diff)
			}
		}
	}
	if n != 18 {
		t.Errorf("%d pods in both versions, want 18", n)
	}
}
