//go:build envtest

package sidecarset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
	"github.com/kruisekit/kruisekit/sidecar"
)

// TestHistory: the newest revisions stay, as many as the limit allows. A spec that was there before is the newest one
// again, under its old name.
func TestHistory(t *testing.T) {
	b := start(t, sidecarset.Options{})
	set := b.create("mesh", version("v1"))
	b.latest(set)
	for i := 2; i <= 15; i++ {
		b.change(set, image(fmt.Sprint("mesh:", i)), version(fmt.Sprint("v", i)))
		b.latest(set)
	}
	b.kept(set, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	twelve := b.revisions(set)[6]
	b.change(set, image("mesh:12"), version("again"))
	if got := b.latest(set); got != twelve.Name {
		t.Errorf("want %s again, got %s", twelve.Name, got)
	}
	b.kept(set, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)
	newest := b.revisions(set)[9]
	want := map[string]string{
		owner: b.Namespace, v1beta1.SidecarSetNameLabel: set.Name, v1beta1.SidecarSetCustomVersionLabel: "again",
		kruise.RevisionHashLabelKey: newest.Labels[kruise.RevisionHashLabelKey],
	}
	if diff := cmp.Diff(want, newest.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if newest.Annotations[kruise.SidecarSetHashKey] != set.Annotations[kruise.SidecarSetHashKey] ||
		!metav1.IsControlledBy(newest, set) {
		t.Errorf("the revision does not tell what it is of: %+v", newest.ObjectMeta)
	}
	b.change(set, func(s *v1beta1.SidecarSet) { s.Spec.RevisionHistoryLimit = ptr.To(int32(0)) })
	b.kept(set, 16)
}

// TestCanary: sets that update nothing do not look at their pods any more, unless that is asked for.
func TestCanary(t *testing.T) {
	for name, c := range map[string]struct {
		options sidecarset.Options
		ready   int32
	}{"as the reference": {sidecarset.Options{}, 0}, "refreshed": {sidecarset.Options{RefreshNotUpdate: true}, 2}} {
		t.Run(name, func(t *testing.T) {
			b := start(t, c.options)
			base := b.create("base", notUpdate)
			canary := b.create("canary", notUpdate, func(s *v1beta1.SidecarSet) {
				s.Annotations = map[string]string{
					v1beta1.SidecarSetCanaryAnnotation: "true", v1beta1.SidecarSetBaseAnnotation: base.Name,
				}
			})
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.Namespace}}
			b.get(namespace)
			template := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}}}
			selection, err := sidecar.Select(template, namespace, parsed(t, base, canary))
			if err != nil {
				t.Fatal(err)
			}
			var sets []*v1beta1.SidecarSet
			for _, s := range selection.Sets {
				sets = append(sets, s.Object().DeepCopy())
			}
			for i := range 2 {
				b.pod(fmt.Sprint("pod-", i), sets, func(p *corev1.Pod) { p.Annotations = map[string]string{unready: ""} })
			}
			b.counted(canary, 2, 2, 0, 0)
			b.Still()
			for _, pod := range b.pods() {
				b.patch(&pod, `{"metadata":{"annotations":{"`+unready+`":null}}}`)
			}
			b.Until(func() error {
				for _, pod := range b.pods() {
					if c := pod.Status.Conditions; !slices.ContainsFunc(c, func(c corev1.PodCondition) bool {
						return c.Type == corev1.PodReady && c.Status == "True"
					}) {
						return fmt.Errorf("%s is not ready", pod.Name)
					}
				}
				return nil
			})
			b.Still()
			b.counted(canary, 2, 2, c.ready, c.ready)
			b.counted(base, 0, 0, 0, 0)
			b.runs("canary=canary:1", "canary=canary:1")
		})
	}
}

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
