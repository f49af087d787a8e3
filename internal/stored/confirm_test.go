package stored_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
)

// live answers with the metadata that the API server has, and counts the reads.
type live struct {
	client.Reader

	now   *metav1.ObjectMeta
	err   error
	reads int
}

func (l *live) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.reads++
	switch meta, is := into.(*metav1.PartialObjectMetadata); {
	case l.err != nil:
		return l.err
	case !is:
		return errors.New("more than the metadata is read")
	case l.now == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
	default:
		meta.ObjectMeta = *l.now
	}
	return nil
}

func object(uid types.UID, generation int64) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid, Generation: generation}
}

func TestConfirm(t *testing.T) {
	deleted := object("u", 2)
	deleted.DeletionTimestamp = &metav1.Time{}
	for why, c := range map[string]struct {
		now, cached *metav1.ObjectMeta
		want        bool
	}{
		"the cache shows what is stored":             {object("u", 2), object("u", 2), true},
		"the cache has seen a change since the read": {object("u", 2), object("u", 3), true},
		"the cache shows an older spec":              {object("u", 2), object("u", 1), false},
		"the object is gone":                         {nil, object("u", 2), false},
		"another object has the name":                {object("v", 1), object("u", 2), false},
		"the object is being deleted":                {deleted, object("u", 2), false},
	} {
		t.Run(why, func(t *testing.T) {
			confirmed, from := &stored.Confirmed{}, &live{now: c.now}
			for range 3 {
				after, err := confirmed.Confirm(t.Context(), from, corev1.SchemeGroupVersion.WithKind("Pod"), c.cached)
				if err != nil || (after == 0) != c.want {
					t.Errorf("recheck after %s, %v; want confirmed %t", after, err, c.want)
				}
			}
			if confirmed.Has(c.cached) != c.want {
				t.Errorf("Has reports %t", !c.want)
			}
			if from.reads != 1 {
				t.Errorf("%d reads, want 1", from.reads)
			}
		})
	}
}

// A cache that catches up is confirmed without another read. Another object of the name is read again, and so is one
// whose read has failed.
func TestConfirmLater(t *testing.T) {
	confirmed, from := &stored.Confirmed{}, &live{err: errors.New("unavailable")}
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	confirm := func(o *metav1.ObjectMeta) bool {
		t.Helper()
		after, err := confirmed.Confirm(t.Context(), from, kind, o)
		return err == nil && after == 0
	}
	if confirm(object("u", 1)) {
		t.Error("nothing is known, and the object is confirmed")
	}
	if confirmed.Has(object("u", 1)) {
		t.Error("the read has failed, and the object is confirmed")
	}
	from.err, from.now = nil, object("u", 2)
	if confirm(object("u", 1)) || !confirm(object("u", 2)) || !confirm(object("u", 3)) || from.reads != 2 {
		t.Errorf("the generation 2 is stored: %d reads", from.reads)
	}
	from.now = object("v", 1)
	if !confirm(object("v", 1)) || from.reads != 3 {
		t.Errorf("another object has the name: %d reads", from.reads)
	}
	confirmed.Forget(types.NamespacedName{Namespace: "shop", Name: "web"})
	if !confirm(object("v", 1)) || from.reads != 4 {
		t.Errorf("after Forget: %d reads", from.reads)
	}
}
