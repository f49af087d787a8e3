package pod_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// markersOf are the markers of a namespace.
type markersOf struct {
	all   []*v1alpha1.PodProbeMarker
	fault error
	asked string
}

func (m *markersOf) Ready(context.Context) error { return m.fault }

func (m *markersOf) In(_ context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error) {
	m.asked = namespace
	return m.all, nil
}

func newMarker(t *testing.T, name, spec string) *v1alpha1.PodProbeMarker {
	t.Helper()
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &m.Spec); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestProbes: a new pod gets the probes of the markers that select it, once, and nothing rejects the pod.
func TestProbes(t *testing.T) {
	idle := newMarker(t, "game",
		`{selector: {matchLabels: {app: web}}, probes: [{name: idle, containerName: main, podConditionType: a/idle, probe: {exec: {command: [idle]}}}]}`)
	large := newMarker(t, "large",
		`{selector: {matchLabels: {app: web}}, probes: [{name: idle, containerName: main, podConditionType: a/large, probe: {exec: {command: [`+
			strings.Repeat("x", 64<<10)+`]}}}]}`)
	stamp := map[string]string{
		"kruise.io/podprobe":            `[{"name":"idle","containerName":"main","probe":{"exec":{"command":["idle"]}},"podConditionType":"a/idle"}]`,
		"kruise.io/podprobemarker-list": "game",
	}
	for name, c := range map[string]struct {
		why     string
		markers *markersOf
		labels  map[string]string
		have    map[string]string
		// want are the annotations; nil where the pod stays as it is.
		want    map[string]string
		lacking int
	}{
		"selected": {
			why: "the annotations have the probes", markers: &markersOf{all: []*v1alpha1.PodProbeMarker{idle}}, want: stamp,
		},
		"others": {
			why:     "another pod stays as it is",
			markers: &markersOf{all: []*v1alpha1.PodProbeMarker{idle}},
			labels:  map[string]string{"app": "db"},
		},
		"again": {
			why: "a pod that has them stays as it is", markers: &markersOf{all: []*v1alpha1.PodProbeMarker{idle}}, have: stamp,
		},
		"no marker": {why: "a pod without markers stays as it is", markers: &markersOf{}},
		"not read": {
			why: "a lookup that fails rejects no pod", markers: &markersOf{fault: errors.New("not synced")}, lacking: 1,
		},
		"too large": {
			why:     "annotations that an API server rejects do not reject the pod",
			markers: &markersOf{all: []*v1alpha1.PodProbeMarker{large}},
			lacking: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: c.have}}
			if c.labels != nil {
				before.Labels = c.labels
			}
			before.Spec.Containers = []corev1.Container{{Name: "main"}}
			was := before.DeepCopy()
			got, err := pod.Probes(c.markers).Apply(t.Context(), pod.Request{Namespace: "shop", Pod: before})
			if err != nil || got.Lacking != c.lacking || len(got.Warnings) != c.lacking || (got.Pod != nil) != (c.want != nil) {
				t.Fatalf("%s: %+v, %v", c.why, got, err)
			}
			if c.markers.fault == nil && c.markers.asked != "shop" {
				t.Errorf("asked for markers of %q", c.markers.asked)
			}
			if got.Pod != nil && cmp.Diff(c.want, got.Pod.Annotations) != "" || cmp.Diff(was, before) != "" {
				t.Errorf("%s: %v", c.why, got.Pod)
			}
		})
	}
	if got, err := pod.Probes(nil).Apply(t.Context(), pod.Request{Pod: &corev1.Pod{}}); err != nil || got.Pod != nil {
		t.Errorf("without the gate: %+v, %v", got, err)
	}
}
