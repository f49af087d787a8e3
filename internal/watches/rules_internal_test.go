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
	r := NewRules(func(*v1alpha1.EphemeralJob) (string, error) { return "", nil })
	holds := func(step, want string) {
		t.Helper()
		counts := map[string]int{}
		for list, rules := range r.known {
			counts[list] = len(rules)
		}
		if got := fmt.Sprint(counts); got != want {
			t.Errorf("%s: holds %s, want %s", step, got, want)
		}
	}
	r.of("shop", jobs("shop", "a", "b", "c"))
	r.of("yard", jobs("yard", "a"))
	r.of("", append(jobs("shop", "a", "b"), jobs("yard", "a")...))
	holds("listed", "map[:3 shop:3 yard:1]")
	r.of("shop", jobs("shop", "b", "d"))
	holds("two have ended, one is new", "map[:3 shop:2 yard:1]")
	r.Forget(types.NamespacedName{Namespace: "yard", Name: "a"})
	holds("one is gone", "map[:2 shop:2]")
	r.of("shop", nil)
	r.of("", nil)
	holds("all are gone", "map[]")
}
