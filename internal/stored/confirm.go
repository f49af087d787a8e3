package stored

import (
	"context"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/memory"
)

// Confirmed records which objects of a cache are at least as new as what the API server stored after the process
// started. The first list of a cache may come from a watch cache that lags: a new leader then has an older spec than
// the leader before, and the dependents that follow from the newer spec look like surplus. From its first list on, a
// cache never goes back, so that one read for each object is enough. The zero value is empty.
type Confirmed struct {
	objects memory.Of[types.NamespacedName, confirmation]
}

// confirmation is the generation from which on the object of a UID is confirmed.
type confirmation struct {
	uid        types.UID
	generation int64
}

// shows reports whether an object is at least that of the confirmation.
func (c confirmation) shows(object metav1.Object) bool {
	return c.uid == object.GetUID() && object.GetGeneration() >= c.generation
}

// retryBehind is when to look again at an object that the cache shows as it was before. The event of the change usually
// comes first.
const retryBehind = time.Second

// Confirm reads the metadata of an object past the cache, once in the life of the object and of c. It comes before what
// would do harm if the spec were older than what is stored. recheckAfter is zero where the spec is confirmed; otherwise
// the caller does nothing, and looks again then.
func (c *Confirmed) Confirm(
	ctx context.Context, live client.Reader, kind schema.GroupVersionKind, object metav1.Object,
) (recheckAfter time.Duration, err error) {
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	known := c.objects.Recall(name)
	if known.uid != object.GetUID() {
		now, err := Metadata(ctx, live, kind, name)
		if err != nil {
			return 0, err
		}
		known = confirmation{uid: object.GetUID(), generation: math.MaxInt64} // it is gone, or is about to be
		if now != nil && now.UID == known.uid && now.DeletionTimestamp == nil {
			known.generation = now.Generation
		}
		c.objects.Note(name, func(k *confirmation) { *k = known })
	}
	if !known.shows(object) {
		return retryBehind, nil
	}
	return 0, nil
}

// Has reports whether Confirm needs no read, and finds the object confirmed.
func (c *Confirmed) Has(object metav1.Object) bool {
	return c.objects.Recall(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}).shows(object)
}

// Forget drops what is known of an object that is gone.
func (c *Confirmed) Forget(name types.NamespacedName) { c.objects.Forget(name) }
