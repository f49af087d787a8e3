//go:build envtest

package sidecarset_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset"
)

// odd are sets as they can be stored while no webhook validates them.
func odd() map[string]func(*v1beta1.SidecarSet) {
	near := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	return map[string]func(*v1beta1.SidecarSet){
		"selector":    func(s *v1beta1.SidecarSet) { s.Spec.Selector = near },
		"no-selector": func(s *v1beta1.SidecarSet) { s.Spec.Selector = nil },
		"namespaces":  func(s *v1beta1.SidecarSet) { s.Spec.NamespaceSelector = near },
		"updates":     func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Selector = near },
		"partition":   partition("many"),
		"below":       partition("-7"),
		"budget":      maxUnavailable("x%"),
		"endless":     maxUnavailable("99999999999999999999999%"),
		"type":        func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Type = "Odd" },
		"limit":       func(s *v1beta1.SidecarSet) { s.Spec.RevisionHistoryLimit = ptr.To(int32(-5)) },
		"hot": func(s *v1beta1.SidecarSet) {
			hot(s)
			s.Spec.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = ""
		},
		"no-containers": func(s *v1beta1.SidecarSet) { s.Spec.Containers = nil },
		"twice":         func(s *v1beta1.SidecarSet) { s.Spec.Containers = append(s.Spec.Containers, s.Spec.Containers[0]) },
		"nameless":      func(s *v1beta1.SidecarSet) { s.Spec.Containers[0].Name = "" },
		"no-image":      image(""),
		"no-tag":        image("::"),
		"pinned": func(s *v1beta1.SidecarSet) {
			s.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{RevisionName: ptr.To("a/b")}
		},
		"version": version("no label"),
		"name-that-is-longer-than-a-label-may-be-so-that-no-revision-has-it": func(*v1beta1.SidecarSet) {},
		"preferred": func(s *v1beta1.SidecarSet) {
			s.Spec.UpdateStrategy.PriorityStrategy = &kruise.UpdatePriorityStrategy{
				WeightPriority: []kruise.UpdatePriorityWeightTerm{{Weight: -1, MatchSelector: *near}},
				OrderPriority:  []kruise.UpdatePriorityOrderTerm{{}},
			}
			s.Spec.UpdateStrategy.ScatterStrategy = kruise.UpdateScatterStrategy{{Key: "app", Value: "*"}, {}, {}}
		},
		"merged": func(s *v1beta1.SidecarSet) {
			s.Spec.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{{
				PatchPolicy: v1beta1.SidecarSetMergePatchJsonPatchPolicy, Annotations: map[string]string{"kept": "{}"},
			}}
		},
		"own-canary": func(s *v1beta1.SidecarSet) {
			s.Annotations = map[string]string{
				v1beta1.SidecarSetCanaryAnnotation: "true", v1beta1.SidecarSetBaseAnnotation: s.Name,
			}
		},
	}
}

// TestOddSets: whatever sets are stored, others on the same pods do their work, the pods keep what no set has, and
// there is an end of it.
func TestOddSets(t *testing.T) {
	b := start(t, sidecarset.Options{})
	good := b.create("mesh", maxUnavailable("100%"))
	names, bare := []string{good.Name}, map[string]string{}
	var containers []corev1.Container
	for name, change := range odd() {
		set := b.create(name, func(s *v1beta1.SidecarSet) {
			s.Spec.Containers[0].Name = name[:min(len(name), 12)]
			s.Spec.Containers[0].Image = "odd:2"
			s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromString("100%"))
		}, change)
		names, bare[set.Name] = append(names, set.Name), set.Annotations[kruise.SidecarSetHashWithoutImageKey]
		containers = append(containers, corev1.Container{Name: name[:min(len(name), 12)], Image: "odd:1"})
	}
	slices.Sort(names)
	for _, name := range []string{"pod-0", "pod-1"} {
		b.pod(name, []*v1beta1.SidecarSet{good}, func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, containers...)
			record, err := json.Marshal(bare)
			if err != nil {
				t.Fatal(err)
			}
			p.Annotations = map[string]string{kruise.SidecarSetHashWithoutImageKey: string(record), "kept": "no JSON"}
		})
		b.annotate(name, map[string]string{kruise.SidecarSetInjectedListKey: strings.Join(names, ",")})
	}
	b.counted(good, 2, 2, 2, 2)
	b.change(good, image("mesh:2"))
	b.counted(good, 2, 2, 2, 2)
	b.Still()
	updated := 0
	for _, pod := range b.pods() {
		if pod.Annotations["kept"] != "no JSON" {
			t.Errorf("%s: %v", pod.Name, pod.Annotations)
		}
		for _, c := range pod.Spec.Containers {
			switch {
			case c.Name == "main" && c.Image != "main:1", c.Name == "mesh" && c.Image != "mesh:2":
				t.Errorf("%s/%s runs %s", pod.Name, c.Name, c.Image)
			case c.Image == "odd:2":
				updated++
			}
		}
	}
	if updated == 0 {
		t.Error("no set could do anything: they are too odd")
	}
	t.Logf("%d containers were updated; events: %d", updated, b.events("InvalidSpec"))
}
