package subset_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// Two pods fit into the subset of own nodes, and the third bursts into the rented one.
func ExampleBooks_Admit() {
	ws := &subset.Spread{}
	ws.Spec.Subsets = []subset.Subset{{Name: "own", MaxReplicas: ptr.To(intstr.FromInt32(2))}, {Name: "rented"}}
	limits, _ := subset.Limits(ws.Spec.Subsets, subset.Base{})
	books := subset.Open(ws, limits)
	for _, pod := range []string{"web-0", "web-1", "web-2"} {
		place := books.Admit(subset.Arrival{Version: "versionIgnored", ID: pod}, time.Unix(0, 0))
		fmt.Println(pod, place.Subset.Name)
	}
	fmt.Println("missing", books.Status().VersionedSubsetStatuses["versionIgnored"][0].MissingReplicas)
	// Output:
	// web-0 own
	// web-1 own
	// web-2 rented
	// missing 0
}

func ExamplePlaceTemplate() {
	template := &corev1.PodTemplateSpec{}
	template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	placed, err := subset.PlaceTemplate(template, subset.Placement{
		Term: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"},
		}}},
		Patch: []byte(`{"spec":{"containers":[{"name":"web","env":[{"name":"ZONE","value":"a"}]}]}}`),
	})
	terms := placed.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	fmt.Println(terms[0].MatchExpressions[0].Values, placed.Spec.Containers[0].Env[0].Value, err)
	// Output: [a] a <nil>
}
