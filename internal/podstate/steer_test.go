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
	newPod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace, p.Name = "default", "db-0"
		change(p)
		return p
	}
	plain := newPod(func(*corev1.Pod) {})
	onN1 := recorded("db-0", "n1", "a")
	preferring := func(weight int32, key string) *podstate.State {
		s := newState(onN1)
		s.Spec.PreferredPersistentTopology[0].Weight = weight
		s.Spec.PreferredPersistentTopology[0].Preference.Keys[0] = key
		return s
	}
	restores := annotated(v1beta1.AnnotationRestorePodAnnotations, "true")
	addressed := func(s *podstate.State) {
		s.Status.PodStates = map[string]v1beta1.PodState{"db-0": {
			NodeName: "n1", Annotations: map[string]string{"address": "10.0.0.1", "unwanted": "x"},
		}}
	}
	const injected = kruise.InjectedPersistentPodStateKey
	for sentence, c := range map[string]struct {
		state *podstate.State
		pod   *corev1.Pod
		// want changes the pod; nil for a pod that stays.
		want func(*corev1.Pod)
	}{
		"required labels select, preferred ones are preferred": {newState(onN1), plain, func(p *corev1.Pod) {
			p.Spec.NodeSelector, p.Annotations = map[string]string{zone: "a"}, map[string]string{injected: "db"}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term(10, host, "n1")},
			}}
		}},
		"own terms stay, and stay first": {
			newState(onN1),
			newPod(func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{{}},
					},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term(5, "disk", "ssd")},
				}}
			}),
			func(p *corev1.Pod) {
				p.Spec.NodeSelector, p.Annotations = map[string]string{zone: "a"}, map[string]string{injected: "db"}
				nodes := p.Spec.Affinity.NodeAffinity
				nodes.PreferredDuringSchedulingIgnoredDuringExecution = append(
					nodes.PreferredDuringSchedulingIgnoredDuringExecution, term(10, host, "n1"))
			},
		},
		"the record wins over the own selector, and other keys stay": {
			newState(onN1, requiring(zone)),
			newPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zone: "b", "disk": "ssd"} }),
			func(p *corev1.Pod) { p.Spec.NodeSelector[zone], p.Annotations = "a", map[string]string{injected: "db"} },
		},
		"the API server would reject the weight 0": {preferring(0, host), plain, func(p *corev1.Pod) {
			p.Spec.NodeSelector, p.Annotations = map[string]string{zone: "a"}, map[string]string{injected: "db"}
		}},
		"an empty term would prefer nothing": {preferring(10, "rack"), plain, func(p *corev1.Pod) {
			p.Spec.NodeSelector, p.Annotations = map[string]string{zone: "a"}, map[string]string{injected: "db"}
		}},
		"wanted annotations come back where the state asks for it": {
			newState(addressed, annotations("address"), restores), plain,
			func(p *corev1.Pod) { p.Annotations = map[string]string{"address": "10.0.0.1"} },
		},
		"an own annotation stays": {
			newState(addressed, annotations("address"), restores),
			newPod(func(p *corev1.Pod) { p.Annotations = map[string]string{"address": "mine"} }), nil,
		},
		"by default annotations do not come back": {newState(addressed, annotations("address")), plain, nil},
		"a first pod has no record":               {newState(recorded("db-1", "n1", "a")), plain, nil},
		"a pod without a name has no record": {
			newState(recorded("", "n1", "a")), newPod(func(p *corev1.Pod) { p.Name = "" }), nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			before, stored := c.pod.DeepCopy(), c.state.DeepCopy()
			got := podstate.Steer(c.pod, c.state)
			if diff := cmp.Diff(before, c.pod) + cmp.Diff(stored, c.state); diff != "" {
				t.Errorf("the input changed (-was +is):\n%s", diff)
			}
			var want *corev1.Pod
			if c.want != nil {
				want = c.pod.DeepCopy()
				c.want(want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
