//go:build envtest

package containerrecreaterequest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// entry is that of a request in the message of KruisePodReady.
func entry(r *request) string {
	return fmt.Sprintf(`{"userAgent":"ContainerRecreateRequest","key":"%s/%s"}`, r.Namespace, r.Name)
}

// The pod leaves traffic for the grace period, and is back after the request. Others who keep it not ready are left
// alone.
func TestUnreadyGrace(t *testing.T) {
	const other = `{"userAgent":"Lifecycle","key":"hook"}`
	for name, c := range map[string]struct {
		before     string
		during     string
		after      string
		comesReady bool
	}{
		"alone":       {"", "[%s]", "[]", true},
		"with others": {"[" + other + "]", "[%s," + other + "]", "[" + other + "]", false},
	} {
		t.Run(name, func(t *testing.T) {
			b, n := start(t)
			pod := b.pod("web", gated)
			if c.before != "" {
				b.status(pod, func(pod *corev1.Pod) {
					is := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType)
					is.Status, is.Message = corev1.ConditionFalse, c.before
				})
			}
			n.hold(true)
			r := b.ask("again", pod, grace(2))
			b.until(func() error {
				if n.began() == 0 {
					return errors.New("no container is stopped")
				}
				return b.look(pod)
			})
			if err := b.look(r); err != nil {
				t.Fatal(err)
			}
			since := graceCondition(r)
			if since == nil || since.Status != metav1.ConditionTrue || !slices.Contains(r.Finalizers, finalizer) {
				t.Fatalf("grace %+v, finalizers %v", since, r.Finalizers)
			}
			held := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType)
			if want := fmt.Sprintf(c.during, entry(r)); held.Status != corev1.ConditionFalse || held.Message != want {
				t.Errorf("condition %+v, want message %s", held, want)
			}
			if isTrue(pod, corev1.PodReady) {
				t.Error("the pod is ready")
			}
			n.hold(false)
			b.becomes(r, ended(""))
			if at := n.kills(r, "app"); len(at) != 1 || at[0].Sub(since.LastTransitionTime.Time) < 2*time.Second {
				t.Errorf("stopped at %v, the pod left traffic at %s", at, since.LastTransitionTime)
			}
			if now := graceCondition(r); !now.LastTransitionTime.Equal(&since.LastTransitionTime) {
				t.Errorf("the grace period began at %s, and then at %s", since.LastTransitionTime, now.LastTransitionTime)
			}
			if c.comesReady {
				b.podReady(pod)
			} else if err := b.look(pod); err != nil {
				t.Fatal(err)
			}
			held = lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType)
			if held.Message != c.after || (held.Status == corev1.ConditionTrue) != c.comesReady {
				t.Errorf("afterwards %+v", held)
			}
		})
	}
}

// Without the gate the grace period is only a delay; that is reported once.
func TestGraceWithoutGate(t *testing.T) {
	b, n := start(t)
	pod := b.pod("web")
	r := b.ask("again", pod, grace(1))
	b.becomes(r, ended(""))
	since := graceCondition(r)
	if since == nil {
		t.Fatal("there was no grace period")
	}
	if at := n.kills(r, "app"); len(at) != 1 || at[0].Sub(since.LastTransitionTime.Time) < time.Second {
		t.Errorf("stopped at %v, the grace period began at %s", at, since.LastTransitionTime)
	}
	if err := b.look(pod); err != nil {
		t.Fatal(err)
	}
	if c := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType); c != nil {
		t.Errorf("the pod got %+v", c)
	}
	b.until(func() error {
		if texts := b.events(r, containerrestart.NoteNoGate); len(texts) != 1 || !strings.HasSuffix(texts[0], "(1)") {
			return fmt.Errorf("events %q, want one", texts)
		}
		return nil
	})
}

// A grace period begins once, and nothing but its own condition, being True, says that it has.
func TestGraceBeginsOnce(t *testing.T) {
	earlier := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	ownType := v1beta1.ContainerRecreateRequestPreRecreateGrace
	for name, c := range map[string]struct {
		condition metav1.Condition
		begun     bool
	}{
		"begun":        {metav1.Condition{Type: ownType, Status: metav1.ConditionTrue}, true},
		"not any more": {metav1.Condition{Type: ownType, Status: metav1.ConditionFalse}, false},
		"unknown":      {metav1.Condition{Type: ownType, Status: metav1.ConditionUnknown}, false},
		"of others":    {metav1.Condition{Type: "Other", Status: metav1.ConditionTrue}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			pod := b.pod("web", gated)
			r := b.ask("again", pod, grace(60))
			c.condition.Reason, c.condition.LastTransitionTime = "Test", earlier
			r.Status.Phase, r.Status.Conditions = recreating, []metav1.Condition{c.condition}
			if err := b.client.Status().Update(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			b.reconcile(ahead(0), plain)
			b.barrier()
			b.becomes(r, func(r *request) error {
				switch is := graceCondition(r); {
				case is == nil || is.Status != metav1.ConditionTrue:
					return errors.New("no grace period")
				case is.LastTransitionTime.Equal(&earlier) != c.begun:
					return fmt.Errorf("it began at %s", is.LastTransitionTime)
				case slices.Contains(r.Finalizers, finalizer) == c.begun:
					return fmt.Errorf("finalizers %v", r.Finalizers)
				case c.condition.Type != ownType && !slices.Contains(r.Status.Conditions, c.condition):
					return fmt.Errorf("conditions %v", r.Status.Conditions)
				}
				return nil
			})
			if err := b.look(pod); err != nil || isTrue(pod, kruise.KruisePodReadyConditionType) != c.begun {
				t.Errorf("%v, conditions %v", err, pod.Status.Conditions)
			}
		})
	}
}

// A pod that has the gate and not yet the condition is out of traffic already; the condition says False then, and why.
func TestGraceWithoutCondition(t *testing.T) {
	b, _ := start(t)
	pod := b.pod("web", gated)
	b.status(pod, func(pod *corev1.Pod) {
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == kruise.KruisePodReadyConditionType
		})
	})
	r := b.ask("again", pod, grace(60))
	b.becomes(r, func(r *request) error {
		if graceCondition(r) == nil {
			return errors.New("no grace period")
		}
		return b.look(pod)
	})
	if c := lifecycle.ConditionOf(pod, kruise.KruisePodReadyConditionType); c == nil ||
		c.Status != corev1.ConditionFalse || c.Message != "["+entry(r)+"]" {
		t.Errorf("condition %+v", c)
	}
}
