package spread_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/spread"
)

func now() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return now().Add(-d) }

type change func(*corev1.Pod)

func pod(name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Status.Phase = name, corev1.PodPending
	p.Labels = map[string]string{kruise.ControllerRevisionHashLabelKey: "new"}
	p.CreationTimestamp = metav1.NewTime(now())
	for _, change := range changes {
		change(p)
	}
	return p
}

func age(d time.Duration) change {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(ago(d)) }
}

func stuck(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	})
}

func runs(ready time.Duration) change {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(ready)),
		}}
	}
}

func old(p *corev1.Pod) { p.Labels[kruise.ControllerRevisionHashLabelKey] = "old" }

func labelled(value string) change {
	return func(p *corev1.Pod) { p.Labels[kruise.UnitedDeploymentReservedPodKey] = value }
}

func deleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now()} }

func isFalse(since time.Duration) spread.Condition {
	return spread.Condition{Status: corev1.ConditionFalse, Reason: spread.ReasonReschedule, Since: ago(since)}
}

func TestSchedule(t *testing.T) {
	w := spread.Windows{Critical: 30 * time.Second, Unschedulable: 5 * time.Minute}
	cases := map[string]struct {
		why           string
		state         spread.State
		unschedulable bool
		reason        string
		since, after  time.Duration
	}{
		"young": {
			why:   "a pod may wait for a while",
			state: spread.State{Pods: []*corev1.Pod{pod("a", stuck, age(15*time.Second))}},
			after: 15 * time.Second,
		},
		"late": {
			why:           "a pod waited for too long",
			state:         spread.State{Pods: []*corev1.Pod{pod("a", stuck, age(31*time.Second))}},
			unschedulable: true,
			reason:        "reschedule",
			after:         5 * time.Minute,
		},
		"not known": {
			why: "the scheduler has not looked at the pod", state: spread.State{Pods: []*corev1.Pod{pod("a", age(time.Hour))}},
		},
		"starting": {
			why: "the pod has a node",
			state: spread.State{Pods: []*corev1.Pod{
				pod("a", stuck, age(time.Hour), func(p *corev1.Pod) { p.Spec.NodeName = "n" }),
			}},
		},
		"deleted": {
			why: "the pod is being deleted", state: spread.State{Pods: []*corev1.Pod{pod("a", stuck, age(time.Hour), deleted)}},
		},
		"window": {
			why:           "the window is open",
			state:         spread.State{Condition: isFalse(time.Minute)},
			unschedulable: true,
			reason:        "reschedule",
			since:         time.Minute,
			after:         4 * time.Minute,
		},
		"recovered": {"the window is over", spread.State{Condition: isFalse(6 * time.Minute)}, false, "recover", 0, 0},
		"still stuck": {
			why: "a new window opens",
			state: spread.State{
				Condition: isFalse(6 * time.Minute), Pods: []*corev1.Pod{pod("a", stuck, age(time.Hour))},
			},
			unschedulable: true,
			reason:        "reschedule",
			after:         5 * time.Minute,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := spread.Schedule(c.state, w, now())
			if v.Unschedulable != c.unschedulable || v.Condition.Reason != c.reason || v.RecheckAfter != c.after {
				t.Errorf("%s: got %+v", c.why, v)
			}
			if c.reason != "" && !v.Condition.Since.Equal(ago(c.since)) {
				t.Errorf("%s: since %s", c.why, v.Condition.Since)
			}
		})
	}
}

func TestReserve(t *testing.T) {
	w := spread.Windows{Critical: 10 * time.Second, Unschedulable: 30 * time.Second}
	updating := func(since time.Duration, partition int32, pods ...*corev1.Pod) spread.Reservation {
		return spread.Reservation{State: spread.State{Pods: pods}, UpdatingSince: ago(since), Partition: partition}
	}
	of := func(c spread.Condition, pods ...*corev1.Pod) spread.Reservation {
		return spread.Reservation{State: spread.State{Condition: c, Pods: pods}}
	}
	none := spread.Condition{}
	cases := map[string]struct {
		why               string
		in                spread.Reservation
		labels            string
		reserved, overdue int32
		after             time.Duration
	}{
		"young": {
			why:    "a pod may wait for a while",
			in:     of(none, pod("a", stuck, age(time.Second))),
			labels: "a=false",
			after:  9 * time.Second,
		},
		"late": {
			why:      "a pod waited for too long",
			in:       of(none, pod("a", stuck, age(13*time.Second), labelled("false"))),
			labels:   "a=true",
			reserved: 1,
			after:    30 * time.Second,
		},
		"ready, not long": {
			why:      "a reserved pod proves itself",
			in:       of(none, pod("a", runs(10*time.Second), labelled("true"))),
			reserved: 1,
			after:    20 * time.Second,
		},
		"ready": {
			why:    "a reserved pod has proven itself",
			in:     of(none, pod("a", runs(35*time.Second), labelled("true"))),
			labels: "a=false",
		},
		"new in a marked one": {
			why:      "new pods must prove themselves",
			in:       of(isFalse(time.Minute), pod("a")),
			labels:   "a=true",
			reserved: 1,
			after:    30 * time.Second,
		},
		"known in a marked": {
			why: "a pod that is well stays so", in: of(isFalse(time.Minute), pod("a", runs(time.Second), labelled("false"))),
		},
		"update is late": {
			why:      "a pod was not updated in time",
			in:       updating(11*time.Second, 0, pod("a", old, runs(time.Hour), labelled("false"))),
			labels:   "a=true",
			reserved: 1,
			overdue:  1,
			after:    30 * time.Second,
		},
		"update is under way": {
			why:   "an update takes time",
			in:    updating(4*time.Second, 0, pod("a", old, runs(time.Hour), labelled("false"))),
			after: 6 * time.Second,
		},
		"kept by a partition": {
			why: "the user keeps the pod at its revision",
			in:  updating(time.Hour, 1, pod("a", old, runs(time.Hour), labelled("false"))),
		},
		"partition keeps best": {
			why: "of the old pods, ready ones are kept",
			in: updating(time.Hour, 1, pod("a", old, labelled("false")),
				pod("b", old, runs(time.Hour), labelled("false"))),
			labels:   "a=true",
			reserved: 1,
			overdue:  1,
			after:    30 * time.Second,
		},
		"deleted": {
			why: "a pod that is deleted is never reserved", in: updating(time.Hour, 0, pod("a", old, deleted)),
		},
		"an odd label": {
			why: "another value is replaced", in: of(none, pod("a", runs(time.Hour), labelled("yes"))), labels: "a=false",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.in.Revision = "new"
			v := spread.Reserve(c.in, w, now())
			if got := printed(v.Labels); got != c.labels || v.Pods != c.reserved || v.Overdue != c.overdue ||
				v.RecheckAfter != c.after || v.Unschedulable != (c.reserved > 0) {
				t.Errorf("%s: got %q, %+v", c.why, got, v)
			}
		})
	}
}

func printed(labels []spread.PodLabel) string {
	var all []string
	for _, l := range labels {
		all = append(all, l.Pod.Name+"="+l.Value())
	}
	return strings.Join(all, " ")
}

// A subset that recovered and grows is marked again; one that does not grow is not.
func TestGrow(t *testing.T) {
	v := spread.Reserve(spread.Reservation{State: spread.State{Condition: isFalse(time.Minute)}}, spread.Windows{}, now())
	if v.Condition.Status != corev1.ConditionTrue || v.Condition.Message != "no reserved pods" {
		t.Fatalf("got %+v", v)
	}
	for next, want := range map[int32]corev1.ConditionStatus{
		1: corev1.ConditionTrue, 2: corev1.ConditionTrue, 3: corev1.ConditionFalse,
	} {
		if got := v.Grow(true, 2, next, now()); got.Status != want {
			t.Errorf("from 2 to %d: %+v", next, got)
		}
	}
	if got := v.Grow(false, 2, 3, now()); got.Status != corev1.ConditionTrue {
		t.Errorf("a subset that was never marked: %+v", got)
	}
}

// The order of the pods does not matter, and the pods stay as they are.
func TestOrderOfPods(t *testing.T) {
	w := spread.Windows{Critical: 10 * time.Second, Unschedulable: 30 * time.Second}
	changes := []change{
		stuck, age(time.Minute), runs(time.Minute), runs(time.Second), old, labelled("true"), labelled("false"), deleted,
	}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		var pods []*corev1.Pod
		for i := range r.IntN(7) {
			p := pod(fmt.Sprint("p", i))
			for range 1 + r.IntN(4) {
				changes[r.IntN(len(changes))](p)
			}
			pods = append(pods, p)
		}
		in := spread.Reservation{
			State:         spread.State{Pods: pods, Condition: []spread.Condition{{}, isFalse(time.Minute)}[r.IntN(2)]},
			Revision:      "new",
			Partition:     r.Int32N(4),
			UpdatingSince: ago(time.Minute),
		}
		before := fmt.Sprint(pods)
		want, verdict := spread.Reserve(in, w, now()), spread.Schedule(in.State, w, now())
		in.Pods = slices.Clone(pods)
		r.Shuffle(len(in.Pods), func(i, j int) { in.Pods[i], in.Pods[j] = in.Pods[j], in.Pods[i] })
		if diff := cmp.Diff(want, spread.Reserve(in, w, now())); diff != "" {
			t.Fatalf("seed %d: Reserve (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(verdict, spread.Schedule(in.State, w, now())); diff != "" {
			t.Fatalf("seed %d: Schedule (-want +got):\n%s", seed, diff)
		}
		if fmt.Sprint(pods) != before {
			t.Fatalf("seed %d: the pods changed", seed)
		}
		if want.Overdue > want.Pods || int(want.Pods) > len(pods) {
			t.Fatalf("seed %d: %+v", seed, want)
		}
	}
}
