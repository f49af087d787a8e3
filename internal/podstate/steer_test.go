package podstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

func term(weight int32, key, value string) corev1.PreferredSchedulingTerm {
	return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
		}},
	}}
}

func TestSteer(t *testing.T) {
	injected := map[string]string{kruise.InjectedPersistentPodStateKey: "db"}
	newPod := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace, p.Name = "default", "db-0"
		for _, c := range change {
			c(p)
		}
		return p
	}
	own := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{}},
			},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term(5, "disk", "ssd")},
		}}
	}
	restores := annotated(v1beta1.AnnotationRestorePodAnnotations, "true")
	addressed := func(s *podstate.State) {
		s.Status.PodStates = map[string]v1beta1.PodState{"db-0": {
			NodeName: "n1", Annotations: map[string]string{"address": "10.0.0.1", "unwanted": "x"},
		}}
	}
	for name, c := range map[string]struct {
		why         string
		state       *podstate.State
		pod         *corev1.Pod
		selector    map[string]string
		preferred   []corev1.PreferredSchedulingTerm
		annotations map[string]string
	}{
		"recorded": {
			why:         "required labels select, preferred ones are preferred",
			state:       newState(recorded("db-0", "n1", "a")),
			pod:         newPod(),
			selector:    map[string]string{zone: "a"},
			preferred:   []corev1.PreferredSchedulingTerm{term(10, host, "n1")},
			annotations: injected,
		},
		"first": {"nothing is recorded", newState(recorded("db-1", "n1", "a")), newPod(), nil, nil, nil},
		"no name": {
			why:   "a pod without a name is no pod of a StatefulSet",
			state: newState(recorded("", "n1", "a")),
			pod:   newPod(func(p *corev1.Pod) { p.Name = "" }),
		},
		"no labels": {"the node had none", newState(addressed), newPod(), nil, nil, nil},
		"own affinity": {
			why:         "the own terms stay, and stay first",
			state:       newState(recorded("db-0", "n1", "a")),
			pod:         newPod(own),
			selector:    map[string]string{zone: "a"},
			preferred:   []corev1.PreferredSchedulingTerm{term(5, "disk", "ssd"), term(10, host, "n1")},
			annotations: injected,
		},
		"own selector": {
			why:         "the record wins, and other keys stay",
			state:       newState(recorded("db-0", "n1", "a")),
			pod:         newPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zone: "b", "disk": "ssd"} }),
			selector:    map[string]string{zone: "a", "disk": "ssd"},
			preferred:   []corev1.PreferredSchedulingTerm{term(10, host, "n1")},
			annotations: injected,
		},
		"a bad weight": {
			why: "the API server would reject the pod",
			state: newState(recorded("db-0", "n1", "a"), func(s *podstate.State) {
				s.Spec.PreferredPersistentTopology[0].Weight = 0
			}),
			pod:         newPod(),
			selector:    map[string]string{zone: "a"},
			annotations: injected,
		},
		"no preferred keys": {
			why: "an empty term would prefer nothing",
			state: newState(recorded("db-0", "n1", "a"), func(s *podstate.State) {
				s.Spec.PreferredPersistentTopology[0].Preference.Keys = []string{"rack"}
			}),
			pod:         newPod(),
			selector:    map[string]string{zone: "a"},
			annotations: injected,
		},
		"restored": {
			why:         "wanted annotations come back where the state asks for it",
			state:       newState(addressed, annotations("address"), restores),
			pod:         newPod(),
			annotations: map[string]string{"address": "10.0.0.1"},
		},
		"not restored": {"by default they do not", newState(addressed, annotations("address")), newPod(), nil, nil, nil},
		"own annotation": {
			why:   "that of the pod wins",
			state: newState(addressed, annotations("address"), restores),
			pod:   newPod(func(p *corev1.Pod) { p.Annotations = map[string]string{"address": "mine"} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, stored := c.pod.DeepCopy(), c.state.DeepCopy()
			got := podstate.Steer(c.pod, c.state)
			if diff := cmp.Diff(before, c.pod) + cmp.Diff(stored, c.state); diff != "" {
				t.Errorf("the input changed (-was +is):\n%s", diff)
			}
			if (got == nil) != (c.annotations == nil) {
				t.Fatalf("%s: %v", c.why, got)
			}
			if got == nil {
				return
			}
			var preferred []corev1.PreferredSchedulingTerm
			if a := got.Spec.Affinity; a != nil && a.NodeAffinity != nil {
				preferred = a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
			}
			if diff := cmp.Diff(c.selector, got.Spec.NodeSelector) + cmp.Diff(c.preferred, preferred) +
				cmp.Diff(c.annotations, got.Annotations); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if c.pod.Spec.Affinity != nil && (got.Spec.Affinity.PodAffinity == nil ||
				got.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil) {
				t.Error("another affinity is lost")
			}
			if again := podstate.Steer(got, c.state); again != nil {
				t.Errorf("the steered pod is steered again: %s", cmp.Diff(got, again))
			}
		})
	}
}
