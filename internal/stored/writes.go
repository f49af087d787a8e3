package stored

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// NewWrites returns a ledger of untyped objects, which keeps them packed as a cache does: an answer lies in it until
// the next pass.
func NewWrites(live client.Reader, now func() time.Time) *ledger.Ledger[*unstructured.Unstructured] {
	return ledger.New[*unstructured.Unstructured](live, now).Keeping(packed)
}

// packed returns a packed object, and leaves the object itself as it is.
func packed(raw *unstructured.Unstructured) *unstructured.Unstructured {
	if raw == nil {
		return nil
	}
	kept := &unstructured.Unstructured{Object: maps.Clone(raw.Object)}
	Pack(kept)
	return kept
}

// Record records what the API server answered to a write of an object of the kind, and ignores other kinds: the kind is
// a ledger of a run of package driver.
func (k Kind) Record(owner types.NamespacedName, w *write.Write, answer write.Object, err error) {
	if k.Writes != nil && w.Object.GetObjectKind().GroupVersionKind() == k.GVK {
		k.Writes.Record(owner, w, answer, err)
	}
}
