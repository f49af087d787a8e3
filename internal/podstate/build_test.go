package podstate_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstate"
)

const (
	zone = "topology.kubernetes.io/zone"
	host = "kubernetes.io/hostname"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// newState is one with a required zone and a preferred hostname.
func newState(change ...func(*podstate.State)) *podstate.State {
	s := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", Generation: 2}}
	s.Spec.TargetReference = v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
	s.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{zone}}
	s.Spec.PreferredPersistentTopology = []v1beta1.PreferredTopologyTerm{{
		Weight: 10, Preference: v1beta1.NodeTopologyTerm{Keys: []string{host}},
	}}
	for _, c := range change {
		c(s)
	}
	return s
}

// recorded adds a record of a pod on a node in a zone.
func recorded(pod, node, inZone string) func(*podstate.State) {
	return func(s *podstate.State) {
		if s.Status.PodStates == nil {
			s.Status.PodStates = map[string]v1beta1.PodState{}
		}
		s.Status.PodStates[pod] = v1beta1.PodState{
			NodeName: node, NodeTopologyLabels: map[string]string{zone: inZone, host: node},
		}
	}
}

// annotations makes a state record an annotation.
func annotations(keys ...string) func(*podstate.State) {
	return func(s *podstate.State) {
		for _, key := range keys {
			s.Spec.PersistentPodAnnotations = append(s.Spec.PersistentPodAnnotations, v1beta1.PersistentPodAnnotation{Key: key})
		}
	}
}

func annotated(key, value string) func(*podstate.State) {
	return func(s *podstate.State) { s.Annotations = map[string]string{key: value} }
}

// targets changes the version of the target.
func targets(apiVersion string) func(*podstate.State) {
	return func(s *podstate.State) { s.Spec.TargetReference.APIVersion = apiVersion }
}

func policy(p v1beta1.PersistentPodStateRetentionPolicyType) func(*podstate.State) {
	return func(s *podstate.State) { s.Spec.PersistentPodStateRetentionPolicy = p }
}

// requiring makes a state require labels, and prefer none.
func requiring(keys ...string) func(*podstate.State) {
	return func(s *podstate.State) {
		s.Spec.RequiredPersistentTopology, s.Spec.PreferredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: keys}, nil
	}
}

func newNode(name, inZone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{zone: inZone, host: name, "other": "x"},
	}}
}

// ready is a pod that is ready on a node.
func ready(name, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func unready(name, node string) *corev1.Pod {
	p := ready(name, node)
	p.Status.Conditions[0].Status = corev1.ConditionFalse
	return p
}

func ended(name, node string) *corev1.Pod {
	p := ready(name, node)
	p.Status.Phase = corev1.PodFailed
	return p
}

func leaving(name, node string) *corev1.Pod {
	p := ready(name, node)
	p.DeletionTimestamp = &metav1.Time{Time: now}
	return p
}

// pending is a steered pod that waits for a zone.
func pending(name, inZone string, created time.Time) *corev1.Pod {
	p := unready(name, "")
	p.CreationTimestamp = metav1.Time{Time: created}
	p.Annotations = map[string]string{kruise.InjectedPersistentPodStateKey: "db"}
	p.Spec.NodeSelector = map[string]string{zone: inZone}
	p.Status.Phase = corev1.PodPending
	return p
}

// input of a workload of some replicas.
func input(s *podstate.State, replicas int32, nodes []*corev1.Node, pods ...*corev1.Pod) podstate.Input {
	in := podstate.Input{
		State: s, Workload: podstate.Workload{Ordinals: ordinals.Window{Replicas: replicas}}, Pods: pods, Now: now,
		Nodes: map[string]*corev1.Node{},
	}
	for _, n := range nodes {
		in.Nodes[n.Name] = n
	}
	return in
}

// places tells the records as pod -> node and labels.
func places(all map[string]v1beta1.PodState) map[string]string {
	told := map[string]string{}
	for name, r := range all {
		told[name] = r.NodeName + ":"
		for _, key := range []string{zone, host} {
			if v, is := r.NodeTopologyLabels[key]; is {
				told[name] += " " + v
			}
		}
		for key, v := range r.Annotations {
			told[name] += " " + key + "=" + v
		}
		if r.MissingSince != nil {
			told[name] += fmt.Sprintf(" missing %s", r.MissingSince.Sub(now))
		}
		if r.ReleasedAt != nil {
			told[name] += fmt.Sprintf(" released %s", r.ReleasedAt.Sub(now))
		}
	}
	return told
}
