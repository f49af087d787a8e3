package statefulset

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// orphan stores a pod of an ordinal that no object controls, with its claim, as a built-in StatefulSet leaves them.
func (m *model) orphan(ordinal int) {
	m.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprint("db-", ordinal), Labels: map[string]string{"app": "db"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + pod.Name},
	}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-" + pod.Name}}
	for _, o := range []client.Object{pod, claim} {
		if err := m.Server.Create(m.Context(), o); err != nil {
			m.Fatal(err)
		}
	}
}

// The pods and claims that spec.ordinals.start asks for are those of a built-in StatefulSet, or of a process with the
// gate. Without the gate they are kept, and the set says why it stands still. With the gate they are the pods of the
// set.
func TestStartOrdinalWithoutTheGate(t *testing.T) {
	m := newModel(t, Options{}) // StatefulSetStartOrdinal is off by default
	for ordinal := 5; ordinal < 8; ordinal++ {
		m.orphan(ordinal)
	}
	m.RunPods()
	set := m.create("db", 3, parallel, withClaims(keeps, deletes), paused, func(s *v1beta1.StatefulSet) {
		s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: 5}
	})
	pods, claims := uidsOf(m.pods(set)), m.claimUIDs()
	kept := func(when string) {
		t.Helper()
		for range 10 {
			m.Reconcile()
			m.RunPods()
			m.CollectClaims()
		}
		if !maps.Equal(pods, uidsOf(m.pods(set))) || !maps.Equal(claims, m.claimUIDs()) {
			t.Errorf("%s: pods %v became %v, claims %v became %v", when, pods, uidsOf(m.pods(set)), claims, m.claimUIDs())
		}
	}
	says := func(want bool) {
		t.Helper()
		m.Look(set)
		said := len(set.Status.Conditions) == 1 && set.Status.Conditions[0].Status == corev1.ConditionTrue &&
			strings.Contains(set.Status.Conditions[0].Message, "StatefulSetStartOrdinal")
		if said != want {
			t.Errorf("conditions %+v", set.Status.Conditions)
		}
	}
	kept("orphans")
	says(true)
	if events := m.Server.Events(set, "InvalidSpec"); len(events) != 1 {
		t.Errorf("events %v", events)
	}
	m.options.StartOrdinal = true
	m.restart(m.Server)
	kept("adopted")
	says(false)
	if m.Look(set); set.Status.ReadyReplicas != 3 {
		t.Errorf("status %+v", set.Status)
	}
	m.options.StartOrdinal = false
	m.restart(m.Server)
	kept("the gate is off again")
	says(true)
}
