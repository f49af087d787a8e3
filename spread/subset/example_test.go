package subset_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/spread/subset"
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
