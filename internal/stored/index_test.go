package stored_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

func version(raw *unstructured.Unstructured) (string, error) {
	if raw.GetAnnotations()["broken"] != "" {
		return "", errors.New("broken")
	}
	return raw.GetResourceVersion(), nil
}

func state(name, uid, version string) *unstructured.Unstructured {
	raw := &unstructured.Unstructured{}
	raw.SetNamespace("shop")
	raw.SetName(name)
	raw.SetUID(types.UID(uid))
	raw.SetResourceVersion(version)
	return raw
}

// TestIndexRenew: an own state counts while the cache lags behind it, for ledger.Patience, and brings back no object
// that the cache has deleted.
func TestIndexRenew(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "s"}
	for description, c := range map[string]struct {
		uid, version, want string
		// cached is the version that the cache shows later, for which wantLater counts.
		cached, wantLater string
	}{
		"a later state":           {uid: "1", version: "10", want: "10", cached: "9", wantLater: "10"},
		"which the cache has":     {uid: "1", version: "10", want: "10", cached: "10", wantLater: "10"},
		"which the cache is past": {uid: "1", version: "10", want: "10", cached: "11", wantLater: "11"},
		"which etcd has lost":     {uid: "1", version: "10", want: "10", cached: "8", wantLater: "8"},
		"an older state":          {uid: "1", version: "8", want: "9", cached: "9", wantLater: "9"},
		"another object":          {uid: "2", version: "10", want: "9", cached: "9", wantLater: "9"},
		"no such version":         {uid: "1", version: "x", want: "9", cached: "9", wantLater: "9"},
	} {
		t.Run(description, func(t *testing.T) {
			now := time.Unix(1, 0)
			x := stored.NewIndex(version, func() time.Time { return now })
			renew := func(uid, version string) {
				t.Helper()
				if got, err := x.Renew(state("s", uid, version)); err != nil || got != version {
					t.Errorf("renewed %s, %v", got, err)
				}
			}
			show := func(version string) {
				t.Helper()
				if err := x.Put(state("s", "1", version)); err != nil {
					t.Error(err)
				}
			}
			want := func(want string) {
				t.Helper()
				if got, ok := x.Find(name); got != want || !ok || !slices.Equal(x.In("shop"), []string{want}) {
					t.Errorf("got %s and %v, want %s", got, x.In("shop"), want)
				}
			}
			show("9")
			renew(c.uid, c.version)
			want(c.want)
			show(c.cached)
			want(c.wantLater)
			now = now.Add(ledger.Patience)
			want(c.cached)
			x.Delete(name)
			renew("1", "20")
			if _, ok := x.Find(name); ok || x.Any("shop") || len(x.In("shop")) > 0 {
				t.Error("the deleted object is back")
			}
		})
	}
}

// TestIndexIn: the objects of a namespace come by name, without those that cannot be decoded.
func TestIndexIn(t *testing.T) {
	x := stored.NewIndex(version, time.Now)
	broken := state("b", "b", "5")
	for _, raw := range []*unstructured.Unstructured{state("c", "c", "3"), state("b", "b", "2"), state("a", "a", "1")} {
		if err := x.Put(raw); err != nil {
			t.Fatal(err)
		}
	}
	if got := x.In("shop"); !slices.Equal(got, []string{"1", "2", "3"}) || len(x.In("other")) > 0 {
		t.Errorf("got %v", got)
	}
	broken.SetAnnotations(map[string]string{"broken": "true"})
	if err := x.Put(broken); err == nil {
		t.Error("no error")
	}
	if got := x.In("shop"); !slices.Equal(got, []string{"1", "3"}) || !x.Any("shop") {
		t.Errorf("got %v", got)
	}
}
