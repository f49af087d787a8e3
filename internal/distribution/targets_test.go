package distribution_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

func list(names ...string) (l v1beta1.ResourceDistributionTargetNamespaces) {
	for _, n := range names {
		l.List = append(l.List, v1beta1.ResourceDistributionNamespace{Name: n})
	}
	return l
}

// Targets drawn at random are those of a simple second implementation. Names that are listed are targets also where the
// namespace does not exist.
func TestTargets(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"ns-0", "ns-1", "ns-2", "ns-3", "own", "kube-system", "kube-public", ""}
	some := func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(string) bool { return r.IntN(3) > 0 })
	}
	for range 2000 {
		included, excluded, selects := some(), some(), r.IntN(3)
		spec := v1beta1.ResourceDistributionTargets{
			AllNamespaces: r.IntN(4) == 0, IncludedNamespaces: list(included...), ExcludedNamespaces: list(excluded...),
		}
		switch selects {
		case 1:
			spec.NamespaceSelector.MatchLabels = map[string]string{"group": "one"}
		case 2:
			spec.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
				Key: "group", Operator: metav1.LabelSelectorOpDoesNotExist,
			}}
		}
		targets, err := distribution.Select(spec, "own")
		if err != nil {
			t.Fatal(err)
		}
		var listed []string
		for _, name := range names {
			never := slices.Contains(excluded, name) || strings.HasPrefix(name, "kube-")
			if slices.Contains(included, name) && !never && !spec.AllNamespaces && name != "own" && name != "" {
				listed = append(listed, name)
			}
			for _, labels := range []map[string]string{nil, {"group": "one"}} {
				want := !never && (spec.AllNamespaces || slices.Contains(included, name) || selects == 1 && labels != nil ||
					selects == 2 && labels == nil)
				got := [2]bool{targets.Selects(name, labels), targets.Match(name, labels)}
				if got != [2]bool{want, want && name != "own"} {
					t.Fatalf("seed %d: %q %v in %+v: %v", seed, name, labels, spec, got)
				}
			}
		}
		if diff := cmp.Diff(listed, targets.Names(), cmp.Transformer("text", func(s []string) string {
			return fmt.Sprint(s)
		})); diff != "" {
			t.Fatalf("seed %d: names (-want +got):\n%s", seed, diff)
		}
	}
}
