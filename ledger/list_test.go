package ledger_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/ledger"
)

// shown is a cache.
type shown struct {
	client.Reader

	pods []*corev1.Pod
	err  error
}

func (c *shown) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	for _, p := range c.pods {
		if list, is := into.(*corev1.PodList); is && p.Namespace == o.Namespace {
			list.Items = append(list.Items, *p)
		}
	}
	return c.err
}

// List shows what an owner controls, with what was written since, and nothing of another owner of its name.
func TestList(t *testing.T) {
	owner := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	of := func(name string, version int, uid types.UID) *corev1.Pod {
		p, yes := pod(name, version), true
		p.Namespace = "shop"
		p.OwnerReferences = []metav1.OwnerReference{{UID: uid, Controller: &yes}}
		return p
	}
	elsewhere := of("c", 1, "web")
	elsewhere.Namespace = "office"
	cache := &shown{pods: []*corev1.Pod{of("a", 1, "web"), of("b", 2, "other"), elsewhere, of("d", 3, "web")}}
	writes := ledger.New[*corev1.Pod](&server{}, func() time.Time { return time.Unix(0, 0) })
	key := client.ObjectKeyFromObject(owner)
	writes.Patched(key, of("a", 5, "web"))
	writes.Created(key, of("e", 6, "web"))
	writes.Created(key, of("f", 7, "before"))
	writes.Deleted(key, of("d", 3, "web"))

	pods, recheckAfter, err := writes.List(t.Context(), cache, owner, &corev1.PodList{})
	var got []string
	for _, p := range pods {
		got = append(got, show(p))
	}
	slices.Sort(got)
	if want := "shop/a5 shop/e6"; strings.Join(got, " ") != want || recheckAfter != ledger.Patience || err != nil {
		t.Errorf("got %q, again after %v, %v; want %q", got, recheckAfter, err, want)
	}

	services := ledger.New[*corev1.Service](&server{}, time.Now)
	if _, _, err := services.List(t.Context(), cache, owner, &corev1.PodList{}); err == nil {
		t.Error("pods are services")
	}
	cache.err = errors.New("the cache has not synced")
	if _, _, err := writes.List(t.Context(), cache, owner, &corev1.PodList{}); !errors.Is(err, cache.err) {
		t.Errorf("got %v, want %v", err, cache.err)
	}
}
