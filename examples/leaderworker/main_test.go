package main

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/rig/operatortest"
)

// Workers know the address of their leader.
func TestAddress(t *testing.T) {
	w := newWorld(t)
	pod := w.pods["web-1-w2"]
	want := corev1.EnvVar{Name: "LEADER_ADDRESS", Value: "web-1.web.shop"}
	if got := pod.Spec.Containers[0].Env; !slices.Equal(got, []corev1.EnvVar{want}) {
		t.Errorf("%s has %v, want %v", pod.Name, got, want)
	}
	if leader := w.pods["web-1"].Spec; leader.Hostname != "web-1" || leader.Subdomain != "web" {
		t.Errorf("the leader is %s of %s", leader.Hostname, leader.Subdomain)
	}
}

// A rollout changes all pods in place, also where the process dies at each third of its writes.
func TestRollout(t *testing.T) {
	for at := 0; ; at += 3 {
		w := newWorld(t)
		before := operatortest.UIDs(w.pods)
		w.process.DieAt(at)
		objects.Change(w.Model, w.set, func(s *LeaderWorker) {
			s.Spec.Leader, s.Spec.Worker = operatortest.Template("leader:2"), operatortest.Template("worker:2")
		})
		w.Eventually(w.unsettled("2"))
		if after := operatortest.UIDs(w.pods); !maps.Equal(before, after) {
			t.Errorf("dead at %d: pods were recreated: before %v, after %v", at, before, after)
		}
		if w.process.Written() < at {
			break
		}
	}
}

// The number and the size of groups change.
func TestScale(t *testing.T) {
	for at := 0; ; at += 3 {
		w := newWorld(t)
		w.established = false
		w.process.DieAt(at)
		for _, size := range []int32{1, 4} {
			objects.Change(w.Model, w.set, func(s *LeaderWorker) { s.Spec.Size, s.Spec.Replicas = size, 5-size })
			w.Eventually(w.unsettled("1"))
		}
		if w.process.Written() < at {
			break
		}
	}
}

// A pod that fails has its group recreated, and no other. Until then the pod is kept for its logs: each time for twice
// as long, also where another process continues.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	for n, backOff := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		failed, before := w.Clock, operatortest.UIDs(w.pods)
		w.fail("web-1-w1", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
		w.process.Restart()
		w.Eventually(func() error {
			if operatortest.UIDs(w.pods)["web-1-w1"] == before["web-1-w1"] {
				return fmt.Errorf("the pod is the same: %s", w.set.Status.Message)
			}
			return w.unsettled("1")()
		})
		if kept := w.deletedAt.Sub(failed); kept < backOff-time.Second || kept > backOff+time.Second {
			t.Errorf("the failed pod was kept for %v, want %v", kept, backOff)
		}
		for name, uid := range operatortest.UIDs(w.pods) {
			if fails := w.pods[name].Labels[groupLabel] == "web-1"; fails == (uid == before[name]) {
				t.Errorf("pod %s was %s and is %s", name, before[name], uid)
			}
		}
		if got := w.set.Status.Restarts["web-1"].Count; got != int32(n)+1 {
			t.Errorf("%d restarts, want %d", got, n+1)
		}
	}
}

// A container that crashes again and again has its group recreated, too.
func TestCrash(t *testing.T) {
	w := newWorld(t)
	w.fail("web-0", func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].Ready = false
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"},
		}
	})
	for _, deletes := range []bool{false, true} {
		w.Reconcile()
		for name, pod := range w.pods {
			want := deletes && pod.Labels[groupLabel] == "web-0"
			if got := pod.DeletionTimestamp != nil; got != want {
				t.Errorf("%s is deleted: %t, want %t", name, got, want)
			}
		}
		w.Advance(10 * time.Second)
	}
}

func (w *world) fail(name string, change func(*corev1.Pod)) {
	w.Server.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
		if pod.Name != name {
			return pod
		}
		after := pod.DeepCopy()
		change(after)
		for i := range after.Status.Conditions {
			after.Status.Conditions[i].Status = corev1.ConditionFalse
		}
		return after
	})
}
