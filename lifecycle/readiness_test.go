package lifecycle_test

import (
	cmpstd "cmp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func gate(p *corev1.Pod) {
	p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{
		ConditionType: kruise.KruisePodReadyConditionType,
	})
}

func condition(t corev1.PodConditionType, status corev1.ConditionStatus, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: status, Message: message})
	}
}

func ready(p *corev1.Pod) {
	condition(corev1.PodReady, corev1.ConditionTrue, "")(p)
	condition(corev1.ContainersReady, corev1.ConditionTrue, "")(p)
}

func TestHold(t *testing.T) {
	at := metav1.NewTime(now)
	entry := func(status corev1.ConditionStatus, message string) corev1.PodCondition {
		return corev1.PodCondition{
			Type: kruise.KruisePodReadyConditionType, Status: status, LastTransitionTime: at, Message: message,
		}
	}
	cases := map[string]struct {
		pod  *corev1.Pod
		want []corev1.PodCondition
	}{
		"was ready: the pod is taken out of traffic in the same write": {
			podIn(normal, gate, ready, condition(kruise.KruisePodReadyConditionType, "True", "[]")),
			[]corev1.PodCondition{
				entry("False", `[{"userAgent":"a","key":"k"}]`),
				{
					Type:               corev1.PodReady,
					Status:             "False",
					LastTransitionTime: at,
					Reason:             "ReadinessGatesNotReady",
					Message:            `readiness gate "KruisePodReady" is False`,
				},
			},
		},
		"another writer: entries are sorted": {
			podIn(normal, gate, condition(kruise.KruisePodReadyConditionType, "False", `[{"userAgent":"z","key":"k"}]`)),
			[]corev1.PodCondition{entry("False", `[{"userAgent":"a","key":"k"},{"userAgent":"z","key":"k"}]`)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := lifecycle.Gate{}.Hold(c.pod, "a", "k", now)
			if err != nil {
				t.Fatal(err)
			}
			if (w == nil) != (c.want == nil) {
				t.Fatalf("%v", w)
			}
			got := changed(c.pod, sent(t, c.pod, w))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// changed returns the conditions of the second pod that the first has not, KruisePodReady first.
func changed(before, after *corev1.Pod) []corev1.PodCondition {
	var all []corev1.PodCondition
	for _, c := range after.Status.Conditions {
		if old := lifecycle.ConditionOf(before, c.Type); old == nil || *old != c {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b corev1.PodCondition) int { return cmpstd.Compare(a.Type, b.Type) })
	return all
}

func TestForeignMessage(t *testing.T) {
	p := podIn(normal, gate, condition(kruise.KruisePodReadyConditionType, "False", "not ours"))
	_, err := lifecycle.Gate{}.Hold(p, "a", "k", now)
	if err == nil || !strings.Contains(err.Error(), "KruisePodReady") {
		t.Errorf("Hold wrote over a message that it cannot read: %v", err)
	}
	if _, err := (lifecycle.Gate{}).Release(p, "a", "k", now); err == nil {
		t.Error("Release wrote over a message that it cannot read")
	}
	if (lifecycle.Gate{}).IsHeld(p, "a", "k") {
		t.Error("an unreadable message holds no entry")
	}
}

func TestReady(t *testing.T) {
	other := func(p *corev1.Pod) {
		p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: "other"})
	}
	cases := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"no gates: the kubelet alone decides": {podIn(normal, ready), ""},
		"a gate is missing: a condition that is not there is not True": {
			podIn(normal, ready, other), `readiness gate "other" has no condition`,
		},
		"two: all are named": {
			podIn(normal, ready, other, gate, condition(kruise.KruisePodReadyConditionType, "Unknown", "")),
			`readiness gate "other" has no condition, readiness gate "KruisePodReady" is Unknown`,
		},
		"not ready anyway: the kubelet said so": {
			podIn(normal, other, condition(corev1.PodReady, "False", ""), condition(corev1.ContainersReady, "True", "")), "",
		},
		"containers not ready: the kubelet is about to say so": {
			podIn(normal, other, condition(corev1.PodReady, "True", ""), condition(corev1.ContainersReady, "False", "")), "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.Ready(c.pod, now)
			if (got != nil) != (c.want != "") || got != nil && (got.Message != c.want || got.Status != "False") {
				t.Errorf("want %q, got %+v", c.want, got)
			}
		})
	}
}

// FuzzEntries reads messages that anybody may have written.
func FuzzEntries(f *testing.F) {
	f.Add(`[{"userAgent":"Lifecycle","key":"preDeleteHook"}]`, "a", "k")
	f.Add(`null`, "", "")
	f.Fuzz(func(t *testing.T, message, agent, key string) {
		p := podIn(normal, gate, condition(kruise.KruisePodReadyConditionType, "False", message))
		hold, err := lifecycle.Gate{}.Hold(p, agent, key, now)
		if err != nil || !utf8.ValidString(message) {
			return
		}
		p = sent(t, p, hold)
		release, err := lifecycle.Gate{}.Release(p, agent, key, now)
		if err != nil {
			t.Fatalf("what Hold wrote, Release cannot read: %v", err)
		}
		p = sent(t, p, release)
		if (lifecycle.Gate{}).IsHeld(p, agent, key) {
			t.Error("the entry stays after its release")
		}
	})
}
