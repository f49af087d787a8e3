package uniteddeployment_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// Reserved pods keep their place beside their substitutes, and count again when they have been ready for long enough.
func TestReservationEndToEnd(t *testing.T) {
	for _, kind := range []string{"CloneSet", "Deployment"} {
		m := newModel(t)
		m.room["a"] = 0
		u := m.create("web", 2, "a,b", of(kind), adaptive(10, 30, true))
		m.pass(15 * time.Second)
		m.expect(u, "a 2 [1?R 1?R], b 2 [1 1]")
		m.Look(u)
		if s := u.Status; s.ReservedPods != 2 || s.Replicas != 2 || s.SubsetStatuses[0].ReservedPods != 2 ||
			s.LabelSelector != "app=web,apps.kruise.io/united-deployment-reserved-pod=false" {
			t.Errorf("%s: status %+v", kind, s)
		}
		m.room["a"] = 1
		m.pass(20 * time.Second)
		m.expect(u, "a 2 [1?R 1R], b 2 [1 1]")
		m.pass(20 * time.Second)
		m.expect(u, "a 2 [1 1?R], b 1 [1]")
		delete(m.room, "a")
		m.pass(time.Minute)
		m.expect(u, "a 2 [1 1], b 0 []")
		m.Look(u)
		if s := u.Status; s.ReservedPods != 0 || s.Replicas != 2 || s.SubsetStatuses[0].Conditions[0].Status != "True" {
			t.Errorf("%s: status %+v", kind, s)
		}
		for _, pod := range m.pods(func(*corev1.Pod) bool { return true }) {
			if pod.Labels[kruise.UnitedDeploymentReservedPodKey] != "false" {
				t.Errorf("%s: labels %v", kind, pod.Labels)
			}
		}
		m.Server.Requests()
		m.Reconcile()
		if requests := m.Server.Requests(); len(requests) > 0 {
			t.Errorf("%s: an idle pass asks %q", kind, requests)
		}
	}
}

// A new subset of an object with reservation must prove itself.
func TestNewSubsetIsReserved(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 2, "a", adaptive(10, 30, true))
	m.rest()
	m.change(u, topology("new", "a"))
	m.rest()
	m.expect(u, "a 2 [1 1], new 2 [1R 1R]")
	m.pass(time.Minute)
	m.expect(u, "a 0 [], new 2 [1 1]")
}

// Pods that find no node do not hold up an update: the budget of a CloneSet is raised, once.
func TestUpdateAroundReservedPods(t *testing.T) {
	m := newModel(t)
	m.room["a"] = 1
	u := m.create("web", 3, "a,b", adaptive(10, 30, true))
	m.pass(15 * time.Second)
	m.expect(u, "a 3 [1 1?R 1?R], b 2 [1 1]")
	m.change(u, image("web:2"))
	m.Reconcile()
	if got := m.child(u, "a").MaxUnavailable(); got != 2 {
		t.Errorf("maxUnavailable %d", got)
	}
	m.Server.Requests()
	m.Reconcile()
	for _, r := range m.Server.Requests() {
		if strings.HasPrefix(r, "APPLY") {
			t.Errorf("the second pass asks %q", r)
		}
	}
	m.rest()
	set := &v1beta1.CloneSet{}
	m.get(client.ObjectKeyFromObject(m.child(u, "a").Object), set)
	if got := set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable; got != nil {
		t.Errorf("maxUnavailable %s after the update", got)
	}
}

// A StatefulSet has no reservation: the strategy counts as Adaptive.
func TestNoReservationOfStatefulSets(t *testing.T) {
	m := newModel(t)
	m.room["a"] = 0
	u := m.create("web", 2, "a,b", of("StatefulSet"), adaptive(10, 30, true))
	m.pass(15 * time.Second)
	m.expect(u, "a 0 [], b 2 [1 1]")
}
