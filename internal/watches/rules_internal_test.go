package watches

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

func jobs(namespace string, names ...string) (all []*unstructured.Unstructured) {
	for _, name := range names {
		raw := &unstructured.Unstructured{Object: map[string]any{}}
		raw.SetNamespace(namespace)
		raw.SetName(name)
		all = append(all, raw)
	}
	return all
}

// The rules of jobs that have ended or are gone are dropped: by the next event, and by Forget where there is none.
func TestRulesAreDropped(t *testing.T) {
	u := Unfinished[v1alpha1.EphemeralJob, string]{Rule: func(*v1alpha1.EphemeralJob) (string, error) { return "", nil }}
	holds := func(step, want string) {
		t.Helper()
		counts := map[string]int{}
		for namespace, rules := range u.rules {
			counts[namespace] = len(rules)
		}
		if got := fmt.Sprint(counts); got != want {
			t.Errorf("%s: holds %s, want %s", step, got, want)
		}
	}
	u.rulesOf("shop", jobs("shop", "a", "b", "c"))
	u.rulesOf("yard", jobs("yard", "a"))
	u.rulesOf("", append(jobs("shop", "a", "b"), jobs("yard", "a")...))
	holds("listed", "map[:3 shop:3 yard:1]")
	u.rulesOf("shop", jobs("shop", "b", "d"))
	holds("two have ended, one is new", "map[:3 shop:2 yard:1]")
	u.Forget(types.NamespacedName{Namespace: "yard", Name: "a"})
	holds("one is gone", "map[:2 shop:2]")
	u.rulesOf("shop", nil)
	u.rulesOf("", nil)
	holds("all are gone", "map[]")
}
