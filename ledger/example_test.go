package ledger_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/ledger"
)

func ExampleLedger_Overlay() {
	ctx, now := context.Background(), time.Unix(0, 0)
	apiServer := &server{pods: map[client.ObjectKey]*corev1.Pod{{Name: "web-2"}: pod("web-2", 7)}}
	owner := types.NamespacedName{Namespace: "default", Name: "web"}
	writes := ledger.New[*corev1.Pod](apiServer, func() time.Time { return now })

	// A pass creates a pod, and patches and deletes one each. Another create ends in a broken connection.
	writes.Created(owner, pod("web-0", 5))
	writes.Patched(owner, pod("web-1", 6))
	writes.Doubt(owner, pod("web-2", 0), fmt.Errorf("connection reset"))
	writes.Deleted(owner, pod("web-3", 3))

	// The next pass comes before the cache has seen any of that.
	cached := []*corev1.Pod{pod("web-1", 2), pod("web-3", 3)}
	pods, recheckAfter, err := writes.Overlay(ctx, owner, cached)
	for _, p := range pods {
		fmt.Println(p.Name, "version", p.ResourceVersion)
	}
	fmt.Println("look again within", recheckAfter, err)
	// Output:
	// web-1 version 6
	// web-0 version 5
	// web-2 version 7
	// look again within 1m0s <nil>
}
