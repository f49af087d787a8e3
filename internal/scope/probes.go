package scope

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// What the markers of one namespace may take up in the entries. A namespace whose markers take more has all of its pods
// sent, so that its user cannot widen the entries of others.
const (
	mostMarkers       = 32
	mostMarkerLetters = 4 << 10
)

// Probes is the source of the step that writes probes into new pods, for the providers of virtual nodes. Pods are
// created without the probes while no replica answers.
func Probes() Source {
	return Source{
		Step: "probes",
		Kind: v1alpha1.GroupVersion.WithKind("PodProbeMarker"),
		Contribute: func(objects []*unstructured.Unstructured) Contribution {
			by := map[string][]*v1alpha1.PodProbeMarker{}
			for _, raw := range objects {
				if m := stored.Whole[v1alpha1.PodProbeMarker](raw); m != nil && podprobe.Stamps(m) {
					by[m.Namespace] = append(by[m.Namespace], m)
				}
			}
			var c Contribution
			var whole []string
			for _, namespace := range slices.Sorted(maps.Keys(by)) {
				all := by[namespace]
				if !fits(all) {
					whole = append(whole, namespace)
					continue
				}
				for _, m := range all {
					c.Selections = append(c.Selections, Selection{
						Object: namespace + "/" + m.Name, In: namespace, Pod: m.Spec.Selector, Ignore: true,
						Namespace: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
					})
				}
			}
			if len(whole) > 0 {
				c.Lists = []List{{Value: "request.namespace", Of: whole, Ignore: true}}
			}
			return c
		},
	}
}

// fits reports whether the markers of a namespace have entries of their own.
func fits(all []*v1alpha1.PodProbeMarker) bool {
	letters := 0
	for _, m := range all {
		letters += m.Spec.Selector.Size()
	}
	return len(all) <= mostMarkers && letters <= mostMarkerLetters
}
