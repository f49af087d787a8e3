package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

func TestSidecarSetConversionLosesNothing(t *testing.T) {
	label := "/metadata/labels/apps.kruise.io~1sidecarset-custom-version"
	roundtriptest.Check[v1alpha1.SidecarSet, v1beta1.SidecarSet](t, roundtriptest.Losses{
		Old: []string{
			label, // empty
			"/spec/namespace",
			// beside a namespace
			"/spec/namespaceSelector", "/spec/namespaceSelector/*", "/spec/namespaceSelector/matchLabels/*",
		},
		Hub: []string{label, "/spec/customVersion"}, // a label that says otherwise than the field
	},
		// A container is copied as a whole.
		func(x *v1beta1.SidecarContainer, c randfill.Continue) {
			x.Name = c.String(5)
			c.Fill(&x.PodInjectPolicy)
			c.Fill(&x.UpgradeStrategy)
			c.Fill(&x.ShareVolumePolicy)
			c.Fill(&x.ShareVolumeDevicePolicy)
			c.Fill(&x.TransferEnv)
			c.Fill(&x.ResourcesPolicy)
		},
		func(x *corev1.Volume, c randfill.Continue) { x.Name = c.String(5) },
		func(x *metav1.ObjectMeta, c randfill.Continue) {
			x.Name = c.String(5)
			if c.Bool() {
				x.Labels = map[string]string{v1beta1.SidecarSetCustomVersionLabel: pick(c, "1", "canary", "")}
			}
		},
		func(x *v1beta1.SidecarSetSpec, c randfill.Continue) {
			c.FillNoCustom(x)
			x.CustomVersion = pick(c, "", "1", "2")
		},
		func(x *v1alpha1.SidecarSetSpec, c randfill.Continue) {
			c.FillNoCustom(x)
			x.Namespace = pick(c, "", "ns1", "ns2")
			if c.Bool() {
				x.NamespaceSelector = inNamespace("ns1")
			}
		},
	)
}

func TestSidecarSetConversion(t *testing.T) {
	zones := &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}
	up := func(s v1alpha1.SidecarSet) v1beta1.SidecarSet {
		hub := v1beta1.SidecarSet{}
		if err := s.ConvertTo(&hub); err != nil {
			t.Fatal(err)
		}
		return hub
	}
	down := func(hub v1beta1.SidecarSet) v1alpha1.SidecarSet {
		s := v1alpha1.SidecarSet{}
		if err := s.ConvertFrom(&hub); err != nil {
			t.Fatal(err)
		}
		return s
	}
	both := v1alpha1.SidecarSet{Spec: v1alpha1.SidecarSetSpec{Namespace: "ns1", NamespaceSelector: zones}}

	t.Run("a namespace goes before a selector", func(t *testing.T) {
		equal(t, inNamespace("ns1"), up(both).Spec.NamespaceSelector)
	})
	t.Run("a namespace can be read back", func(t *testing.T) {
		equal(t, both.Spec, down(up(both)).Spec)
	})
	t.Run("a selector that was never a namespace stays one", func(t *testing.T) {
		equal(t, v1alpha1.SidecarSetSpec{NamespaceSelector: inNamespace("ns1")},
			down(v1beta1.SidecarSet{Spec: v1beta1.SidecarSetSpec{NamespaceSelector: inNamespace("ns1")}}).Spec)
	})
	t.Run("a new selector ends the namespace for good", func(t *testing.T) {
		hub := up(both)
		hub.Spec.NamespaceSelector = inNamespace("ns2")
		hub.Spec.NamespaceSelector.MatchLabels["tier"] = "web"
		s := down(hub)
		equal(t, v1alpha1.SidecarSetSpec{NamespaceSelector: hub.Spec.NamespaceSelector}, s.Spec)
		delete(s.Spec.NamespaceSelector.MatchLabels, "tier")
		equal(t, inNamespace("ns2"), up(s).Spec.NamespaceSelector)
	})
	t.Run("a namespace can be cleared", func(t *testing.T) {
		s := down(up(v1alpha1.SidecarSet{Spec: v1alpha1.SidecarSetSpec{Namespace: "ns1"}}))
		s.Spec.Namespace = ""
		equal(t, nil, up(s).Spec.NamespaceSelector)
	})
	t.Run("the label of the custom version becomes a field, and the source keeps its own", func(t *testing.T) {
		s := v1alpha1.SidecarSet{}
		s.Labels = map[string]string{v1alpha1.SidecarSetCustomVersionLabel: "7", "team": "a"}
		hub := up(s)
		equal(t, "7", hub.Spec.CustomVersion)
		equal(t, map[string]string{"team": "a"}, hub.Labels)
		equal(t, map[string]string{v1alpha1.SidecarSetCustomVersionLabel: "7", "team": "a"}, s.Labels)
		equal(t, s.Labels, down(hub).Labels)
	})
	t.Run("unsetting the custom version lasts", func(t *testing.T) {
		s := v1alpha1.SidecarSet{}
		s.Labels = map[string]string{v1alpha1.SidecarSetCustomVersionLabel: "7"}
		hub := up(s)
		hub.Spec.CustomVersion = ""
		equal(t, "", up(down(hub)).Spec.CustomVersion)
	})
}

func equal[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func inNamespace(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": name}}
}
