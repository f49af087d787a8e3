package workloads_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/write"
)

// claimCache has claims by name, and counts the reads.
type claimCache struct {
	client.Client

	claims map[string]*corev1.PersistentVolumeClaim
	reads  []string
	failed error
}

func (c *claimCache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.reads = append(c.reads, key.Name)
	if c.failed != nil {
		return c.failed
	}
	claim, is := into.(*corev1.PersistentVolumeClaim)
	if c.claims[key.Name] == nil || !is {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, key.Name)
	}
	*claim = *c.claims[key.Name]
	return nil
}

// Claims of a workload that does not control them are read by name, one read each, as the own writes left them.
func TestNamedClaims(t *testing.T) {
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "1",
		}}
	}
	c := &claimCache{claims: map[string]*corev1.PersistentVolumeClaim{
		"data-web-0": claim("data-web-0"), "data-web-9": claim("data-web-9"),
	}}
	api, err := binding.New("test", c, binding.Options{Live: c})
	if err != nil {
		t.Fatal(err)
	}
	d := workloads.NewDependents(api, workloads.DependentOptions{})
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	read := func() string {
		t.Helper()
		c.reads = nil
		got, _, err := d.NamedClaims(t.Context(), key, []string{"data-web-0", "data-web-1"})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Sorted(maps.Keys(got)), " ")
	}
	if got := read(); got != "data-web-0" || strings.Join(c.reads, " ") != "data-web-0 data-web-1" {
		t.Errorf("claims %q after reads %v", got, c.reads)
	}
	created := claim("data-web-1")
	record(d, key, &write.Write{Verb: write.Create, Object: created}, created, nil)
	other := claim("data-web-7")
	record(d, key, &write.Write{Verb: write.Create, Object: other}, other, nil)
	if got := read(); got != "data-web-0 data-web-1" {
		t.Errorf("claims %q: want the own write, and no claim that was not asked for", got)
	}
	c.failed = errors.New("no cache")
	if _, _, err := d.NamedClaims(t.Context(), key, []string{"data-web-0"}); !errors.Is(err, c.failed) {
		t.Errorf("error %v", err)
	}
}
