package scale_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

func TestAvailable(t *testing.T) {
	inPlace := func(status corev1.ConditionStatus) change {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: kruise.InPlaceUpdateReady, Status: status,
			})
		}
	}
	since := func(at time.Time) change {
		return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at) }
	}
	cases := map[string]struct {
		pod     *corev1.Pod
		seconds int32
		ok      bool
		wait    time.Duration
	}{
		"ready: no time is asked for":                 {pod("a", readySince(0)), 0, true, 0},
		"a negative time: is none":                    {pod("a", readySince(0)), -5, true, 0},
		"long enough: to the second":                  {pod("a", readySince(10*time.Second)), 10, true, 0},
		"not long enough: the rest is left":           {pod("a", readySince(4*time.Second)), 10, false, 6 * time.Second},
		"unknown since when: all of the time is left": {pod("a", since(time.Time{})), 10, false, 10 * time.Second},
		"for ever: it waits for as long": {
			pod: pod("a", readySince(0)), seconds: math.MaxInt32, wait: math.MaxInt32 * time.Second,
		},
		"a clock is ahead: it waits longer": {pod("a", readySince(-time.Minute)), 10, false, 70 * time.Second},
		"by centuries: it waits as long as there is": {
			pod:     pod("a", since(now().AddDate(20000, 0, 0))),
			seconds: 10,
			wait:    math.MaxInt64,
		},
		"nothing: no pod is no available pod": {nil, 0, false, 0},
		"empty: nothing is known":             {&corev1.Pod{}, 0, false, 0},
		"not ready: time does not help":       {pod("a", notReady), 10, false, 0},
		"not running: whatever it says of readiness": {
			pod: pod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		},
		"updated in place: and done": {pod("a", inPlace(corev1.ConditionTrue)), 0, true, 0},
		"being updated: in place":    {pod("a", inPlace(corev1.ConditionFalse)), 0, false, 0},
		"held":                       {pod("a", in(kruise.LifecycleStatePreparingUpdate)), 0, false, 0},
		"updated, not normal: the hook's owner still has to act": {pod("a", in(kruise.LifecycleStateUpdated)), 0, false, 0},
		"unknown state: the value is unknown":                    {pod("a", in("Sleeping")), 0, false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if ok, wait := scale.Available(c.pod, c.seconds, now()); ok != c.ok || wait != c.wait {
				t.Errorf("want %v and %v, got %v and %v", c.ok, c.wait, ok, wait)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	cases := map[string]struct {
		budget     scale.Budget
		candidates string // a is available, u is not
		want       string // + goes
	}{
		"all of it: as many as may be":             {scale.Budget{Max: 2}, "aaa", "++-"},
		"unavailable ones: cost nothing":           {scale.Budget{Max: 1, Unavailable: 2}, "uau", "+-+"},
		"overdrawn: nothing is available to spare": {scale.Budget{Max: -3}, "au", "-+"},
		"strict: an unavailable one needs a place": {
			budget:     scale.Budget{Max: 2, Unavailable: 3, Strict: true},
			candidates: "uuu",
			want:       "++-",
		},
		"strict, some on their way: they have the places": {
			budget:     scale.Budget{Max: 2, Unavailable: 2, Strict: true, UnderWay: 2},
			candidates: "ua",
			want:       "--",
		},
		"strict, overdrawn: nothing goes": {scale.Budget{Strict: true}, "u", "-"},
		"absurd: numbers do not turn over": {
			budget:     scale.Budget{Max: math.MaxInt32, Unavailable: math.MaxInt32, UnderWay: math.MaxInt32},
			candidates: "ua",
			want:       "+-",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, candidate := range c.candidates {
				if c.budget.Take(candidate == 'a') {
					got += "+"
				} else {
					got += "-"
				}
			}
			if got != c.want {
				t.Errorf("%s: want %s, got %s", c.candidates, c.want, got)
			}
		})
	}
}
