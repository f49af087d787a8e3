package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// gated is a pod with a gate of another project. A controller that knows no entries may close it, too.
func gated(conditions ...corev1.PodCondition) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.UID, pod.ResourceVersion = "1", "7"
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/in-service"}}
	pod.Status.Conditions = conditions
	return pod
}

func inService(status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
	return corev1.PodCondition{Type: "example.com/in-service", Status: status, Reason: reason, Message: message}
}

func TestGate(t *testing.T) {
	const mine, theirs = `{"userAgent":"me","key":"update"}`, `{"userAgent":"","key":"draining"}`
	gate := lifecycle.Gate{Type: "example.com/in-service"}
	shared := lifecycle.Gate{Type: "example.com/in-service", Shared: true}
	type step func(lifecycle.Gate, *corev1.Pod) (*write.Write, error)
	hold := func(g lifecycle.Gate, pod *corev1.Pod) (*write.Write, error) {
		return g.Hold(pod, "me", "update", time.Unix(0, 0))
	}
	release := func(g lifecycle.Gate, pod *corev1.Pod) (*write.Write, error) {
		return g.Release(pod, "me", "update", time.Unix(0, 0))
	}
	for name, c := range map[string]struct {
		gate   lifecycle.Gate
		do     step
		before []corev1.PodCondition
		want   corev1.PodCondition
		none   bool
		fails  bool
	}{
		"held": {
			gate: gate, do: hold,
			before: []corev1.PodCondition{inService("True", "", "[]")},
			want:   inService("False", "", "["+mine+"]"),
		},
		"held, without a condition": {
			gate: gate, do: hold,
			want: inService("False", "", "["+mine+"]"),
		},
		"released": {
			gate: gate, do: release,
			before: []corev1.PodCondition{inService("False", "", "["+mine+"]")},
			want:   inService("True", "", "[]"),
		},
		"the message of another writer, not shared": {
			gate: gate, do: hold,
			before: []corev1.PodCondition{inService("False", "Draining", "draining")},
			fails:  true,
		},
		"held beside another writer": {
			gate: shared, do: hold,
			before: []corev1.PodCondition{inService("False", "Draining", "draining")},
			want:   inService("False", "Draining", "["+theirs+","+mine+"]"),
		},
		"released, the other writer goes on": {
			gate: shared, do: release,
			before: []corev1.PodCondition{inService("False", "Draining", "["+theirs+","+mine+"]")},
			want:   inService("False", "Draining", "draining"),
		},
		"the other writer alone": {
			gate: shared, do: release,
			before: []corev1.PodCondition{inService("False", "Draining", "draining")},
			none:   true,
		},
		"the other writer without a message": {
			gate: shared, do: hold,
			before: []corev1.PodCondition{inService("False", "Draining", "")},
			want:   inService("False", "Draining", `[{"userAgent":"","key":""},`+mine+"]"),
		},
		"the other writer opened the gate": {
			gate: shared, do: hold,
			before: []corev1.PodCondition{inService("True", "Serving", "all is well")},
			want:   inService("False", "", "["+mine+"]"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := c.do(c.gate, gated(c.before...))
			if c.fails {
				if err == nil {
					t.Errorf("%v, want an error", w)
				}
				return
			}
			if err != nil || (w == nil) != c.none {
				t.Fatalf("%v, %v; want none: %v", w, err, c.none)
			}
			if w == nil {
				return
			}
			after := sent(t, gated(c.before...), w)
			got := *lifecycle.ConditionOf(after, c.gate.Type)
			got.LastTransitionTime.Reset()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	at := func(t corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: status}
	}
	for name, c := range map[string]struct {
		has, changes []corev1.PodCondition
		want         string
	}{
		"the gate opens": {
			has:     []corev1.PodCondition{at(corev1.ContainersReady, "True"), at(corev1.PodReady, "False")},
			changes: []corev1.PodCondition{inService("True", "", "")},
			want:    "True ",
		},
		"the gate closes": {
			has:     []corev1.PodCondition{at(corev1.ContainersReady, "True"), at(corev1.PodReady, "True")},
			changes: []corev1.PodCondition{inService("False", "", "")},
			want:    "False ReadinessGatesNotReady",
		},
		"the containers are not ready": {
			has: []corev1.PodCondition{
				{Type: corev1.ContainersReady, Status: "False", Reason: "ContainersNotReady"}, at(corev1.PodReady, "True"),
			},
			changes: []corev1.PodCondition{inService("True", "", "")},
			want:    "False ContainersNotReady",
		},
		"it is so": {
			has: []corev1.PodCondition{
				at(corev1.ContainersReady, "True"), at(corev1.PodReady, "True"), inService("True", "", ""),
			},
		},
		"the containers become ready": {
			has:     []corev1.PodCondition{inService("True", "", "")},
			changes: []corev1.PodCondition{at(corev1.ContainersReady, "True")},
			want:    "True ",
		},
		"no kubelet has reported": {
			changes: []corev1.PodCondition{inService("True", "", "")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if r := lifecycle.Readiness(gated(c.has...), time.Unix(0, 0), c.changes...); r != nil {
				got = string(r.Status) + " " + r.Reason
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestMovesUnderOwnKeys moves a pod that a fork holds for its hook, under keys that read those of the fork.
func TestMovesUnderOwnKeys(t *testing.T) {
	keys := &kruise.Keys{
		LifecycleState: "own.example.com/state", LifecycleTimestamp: "own.example.com/since", PodReady: "OwnReady",
		Older: []kruise.Keys{{LifecycleState: "fork.example.com/state", PodReady: "ForkReady"}},
	}
	pod := gated(corev1.PodCondition{
		Type: "ForkReady", Status: "False",
		Message: `[{"userAgent":"Lifecycle","key":"preUpdateHook"}]`,
	})
	pod.Labels = map[string]string{"fork.example.com/state": "PreparingUpdate"}
	pod.Annotations = map[string]string{"a": "b"}
	pod.Spec.ReadinessGates[0].ConditionType = "ForkReady"
	hooks := &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{FinalizersHandler: []string{"example.com/drain"}}}
	s := lifecycle.Situation{Pod: pod, Hooks: hooks, AtTarget: true, Keys: keys}
	if verdict, _ := lifecycle.BeforeUpdate(s); verdict != lifecycle.Go {
		t.Errorf("before the update: %s, want Go, since the hook's owner is done", verdict)
	}
	move := lifecycle.Settle(s)
	for {
		w, err := move.Next(s.Pod, time.Unix(0, 0).UTC())
		if err != nil {
			t.Fatal(err)
		}
		if w == nil {
			break
		}
		s.Pod = sent(t, s.Pod, w)
	}
	if c := lifecycle.ConditionOf(s.Pod, "ForkReady"); c.Status != corev1.ConditionTrue {
		t.Errorf("the gate that the pod has: %v", c)
	}
	if diff := cmp.Diff(map[string]string{"own.example.com/state": "Updated"}, s.Pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if s.Pod.Annotations["own.example.com/since"] == "" {
		t.Errorf("annotations %v", s.Pod.Annotations)
	}
}
