//go:build envtest

package sidecarset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
)

// TestNewcomers: pods that come in a crowd are counted together, not one by one.
func TestNewcomers(t *testing.T) {
	t.Parallel()
	b := newGround(t) // nothing runs them
	b.reconcile(sidecarset.Options{}, same)
	set := b.create("mesh")
	b.counted(set, 0, 0, 0, 0)
	b.Still()
	b.Asked()
	began := time.Now()
	b.fleet(40, set)
	b.counted(set, 40, 40, 0, 0)
	most := 2 + int(time.Since(began)/(500*time.Millisecond))
	if asked := b.Asked(); len(asked) > most {
		t.Errorf("%d requests within %s, want at most %d:\n%s",
			len(asked), time.Since(began), most, strings.Join(asked, "\n"))
	}
}

// TestCounts: pods that go, that change their labels, and whose namespace does.
func TestCounts(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", func(s *v1beta1.SidecarSet) {
		s.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": b.Namespace}}
	})
	b.fleet(3, set)
	b.counted(set, 0, 0, 0, 0)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.Namespace}}
	b.patch(namespace, `{"metadata":{"labels":{"team":"`+b.Namespace+`"}}}`)
	b.counted(set, 3, 3, 3, 3)
	pods := b.pods()
	b.patch(&pods[0], `{"metadata":{"labels":{"app":"other"}}}`)
	b.counted(set, 2, 2, 2, 2)
	if err := b.Client.Delete(t.Context(), &pods[1]); err != nil {
		t.Fatal(err)
	}
	b.counted(set, 1, 1, 1, 1)
	b.patch(&pods[2], `{"metadata":{"annotations":{"`+unready+`":""}}}`)
	b.counted(set, 1, 1, 0, 0)
}

// TestMalformed: a set that cannot be read is reported, and keeps no other from its work.
func TestMalformed(t *testing.T) {
	b := start(t, sidecarset.Options{})
	odd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"selector":   map[string]any{"matchLabels": map[string]any{"app": "shop"}},
		"containers": []any{map[string]any{"name": "odd", "image": "odd:1", "env": "no list"}},
	}}}
	odd.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("SidecarSet"))
	odd.SetName(b.Namespace + "-odd")
	odd.SetLabels(map[string]string{owner: b.Namespace})
	if err := b.Client.Create(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	set := b.create("mesh")
	b.fleet(1, set)
	b.counted(set, 1, 1, 1, 1)
	b.Until(func() error {
		if n := b.events("InvalidSpec"); n != 1 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	b.patch(odd, `{"spec":{"containers":[{"name":"odd","image":"odd:1","env":null}]}}`)
	mended := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: odd.GetName()}}
	if b.latest(mended); len(b.revisions(mended)) != 1 {
		t.Error("after it is mended it has no revision")
	}
	// One that can be read and does not work.
	b.change(set, func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Partition = nil },
		partition("many"), image("mesh:2"))
	b.Until(func() error {
		if n := b.events("InvalidSpec"); n != 2 {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	b.counted(set, 1, 0, 1, 0)
	b.change(set, partition("0"))
	b.counted(set, 1, 1, 1, 1)
}
