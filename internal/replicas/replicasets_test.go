package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// crowd is a cache that counts the indexes, and the objects that lists return.
type crowd struct {
	*apiserver.Server

	indexes, read int
	// fault of the next index.
	fault error
}

func (c *crowd) IndexField(ctx context.Context, of client.Object, field string, values client.IndexerFunc) error {
	if err := c.fault; err != nil {
		c.fault = nil
		return err
	}
	c.indexes++
	return c.Server.IndexField(ctx, of, field, values)
}

func (c *crowd) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	err := c.Server.List(ctx, into, o...)
	if list, is := into.(*metav1.PartialObjectMetadataList); is {
		c.read += len(list.Items)
	}
	return err
}

// TestReplicaSetsOf: a Deployment costs the ReplicaSets that it owns, however many the namespace has.
func TestReplicaSetsOf(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &crowd{Server: apiserver.New(scheme, noon), fault: errBroken}
	put := func(name string, owner types.UID, controls bool) {
		t.Helper()
		refs := []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "x", UID: owner, Controller: ptr.To(controls),
		}}
		if err := c.Put(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), OwnerReferences: refs,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		put(fmt.Sprint("other-", i), "other", true)
	}
	put("web-2", "web", true)
	put("web-1", "web", true)
	put("web-0", "web", false)
	f := &replicas.Finder{Cached: c, Indexer: c, Now: noon}
	f.Watch(replicas.ReplicaSets(), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	if _, err := f.ReplicaSetsOf(t.Context(), "shop", "web"); !errors.Is(err, errBroken) {
		t.Errorf("%v, want that of the index", err)
	}
	for range 3 {
		got, err := f.ReplicaSetsOf(t.Context(), "shop", "web")
		if err != nil || !slices.Equal(got, []types.UID{"uid-web-1", "uid-web-2"}) {
			t.Errorf("%v, %v", got, err)
		}
	}
	if c.indexes != 1 || c.read != 9 {
		t.Errorf("%d indexes, and %d ReplicaSets for 3 of 3 each", c.indexes, c.read)
	}
}
