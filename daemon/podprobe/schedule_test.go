package podprobe

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

var start = time.Unix(1_800_000_000, 0)

// asking is a NodePodProbe with a number of pods per namespace, each with one command every so many seconds.
func asking(period int32, pods map[string]int) *v1alpha1.NodePodProbe {
	n := &v1alpha1.NodePodProbe{}
	for namespace, count := range pods {
		for i := range count {
			c := v1alpha1.ContainerProbe{Name: "m#p", ContainerName: "main"}
			c.Probe.Exec, c.Probe.PeriodSeconds = &corev1.ExecAction{Command: []string{"true"}}, period
			n.Spec.PodProbes = append(n.Spec.PodProbes, v1alpha1.PodProbe{
				Namespace: namespace,
				Name:      fmt.Sprint(i),
				UID:       fmt.Sprintf("%s-%d", namespace, i),
				IP:        "10.0.0.1",
				Probes:    []v1alpha1.ContainerProbe{c},
			})
		}
	}
	return n
}

// all begins every run that may begin.
func all(s *schedule, now time.Time) []*run {
	var runs []*run
	for {
		p, _ := s.next(now)
		if p == nil {
			return runs
		}
		runs = append(runs, s.begin(p, func() {}))
	}
}

// found is a run that found a result.
func found(r *run, good bool, now time.Time) *run {
	r.memory, _ = r.memory.Look(&r.asked, &podprobe.Container{ID: "c-" + r.probe.uid, Running: true}, now)
	r.memory = r.memory.Judge(&r.asked, podprobe.Result{Succeeded: good}, now)
	return r
}

// A probe runs once in each of its periods, over ten minutes of 200 containers, and first runs are spread.
func TestPeriods(t *testing.T) {
	s := newSchedule(start)
	s.sync(asking(10, map[string]int{"a": 100, "b": 100}), start)
	counts, most, last := map[string]int{}, 0, map[string]time.Time{}
	for now := start; now.Before(start.Add(10 * time.Minute)); now = now.Add(200 * time.Millisecond) {
		runs := all(s, now)
		most = max(most, len(runs))
		for _, r := range runs {
			if was, ok := last[r.probe.uid]; ok && now.Sub(was) < 9800*time.Millisecond {
				t.Fatalf("%s ran after %s", r.probe.uid, now.Sub(was))
			}
			counts[r.probe.uid]++
			last[r.probe.uid] = now
			s.end(found(r, true, now), now)
		}
	}
	if len(counts) != 200 || most > 20 {
		t.Errorf("%d containers were probed, %d at once", len(counts), most)
	}
	for uid, n := range counts {
		if n < 59 || n > 61 {
			t.Errorf("%s was probed %d times in ten minutes", uid, n)
		}
	}
}

// The bounds hold at each moment, whatever the order in which runs end, and a namespace with few probes waits for no
// other one.
func TestBounds(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	s := newSchedule(start.Add(-time.Hour))
	s.most, s.mostPerNamespace = 8, 6
	s.sync(asking(1, map[string]int{"greedy": 200, "modest": 2}), start)
	var under []*run
	modest := 0
	for now := start; now.Before(start.Add(time.Minute)); now = now.Add(250 * time.Millisecond) {
		for _, run := range all(s, now) {
			under = append(under, run)
			if run.namespace == "modest" {
				modest++
			}
		}
		if s.running != len(under) || len(under) > 8 || s.busy["greedy"] > 6 {
			t.Fatalf("seed %d: %d run, of them %d greedy", seed, s.running, s.busy["greedy"])
		}
		if len(under) < 6 {
			t.Fatalf("seed %d: only %d of 200 run", seed, len(under))
		}
		r.Shuffle(len(under), func(i, j int) { under[i], under[j] = under[j], under[i] })
		kept := under[:0]
		for i, run := range under {
			if run.namespace == "modest" || i%2 == 0 {
				s.end(found(run, true, now), now)
				continue
			}
			kept = append(kept, run)
		}
		under = kept
	}
	if modest != 120 {
		t.Errorf("seed %d: two modest probes ran %d times in a minute", seed, modest)
	}
}

// What changes while a probe runs: its result counts only for what was asked.
func TestChangedMeanwhile(t *testing.T) {
	cases := map[string]struct {
		change func(*v1alpha1.NodePodProbe)
		want   v1alpha1.ProbeState // of the probe m#p afterwards; empty for none
		ended  bool
	}{
		"nothing": {func(*v1alpha1.NodePodProbe) {}, v1alpha1.ProbeSucceeded, false},
		"threshold": {
			func(n *v1alpha1.NodePodProbe) { n.Spec.PodProbes[0].Probes[0].Probe.FailureThreshold = 3 }, v1alpha1.ProbeSucceeded,
			false,
		},
		"handler": {func(n *v1alpha1.NodePodProbe) {
			n.Spec.PodProbes[0].Probes[0].Probe.Exec = &corev1.ExecAction{Command: []string{"x"}}
		}, "", false},
		"address":   {func(n *v1alpha1.NodePodProbe) { n.Spec.PodProbes[0].IP = "10.0.0.2" }, "", false},
		"container": {func(n *v1alpha1.NodePodProbe) { n.Spec.PodProbes[0].Probes[0].ContainerName = "other" }, "", true},
		"removed":   {func(n *v1alpha1.NodePodProbe) { n.Spec.PodProbes = nil }, "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSchedule(start.Add(-time.Hour))
			n := asking(1, map[string]int{"a": 1})
			s.sync(n, start)
			p, _ := s.next(start)
			cancelled := false
			r := s.begin(p, func() { cancelled = true })
			changed := n.DeepCopy()
			c.change(changed)
			s.sync(changed, start)
			if fresh := s.end(found(r, true, start), start); fresh != (c.want != "") || cancelled != c.ended {
				t.Errorf("new result: %t, cancelled: %t", fresh, cancelled)
			}
			if got := s.findings()[podprobe.Key{UID: "a-0", Name: "m#p"}].State; got != c.want {
				t.Errorf("state %q, want %q", got, c.want)
			}
			if s.running != 0 || len(s.busy) != 0 {
				t.Errorf("%d run, busy %v", s.running, s.busy)
			}
		})
	}
}

// A probe that is removed and added again while it runs starts over, and its old run does not count.
func TestRemovedAndAddedAgain(t *testing.T) {
	s := newSchedule(start.Add(-time.Hour))
	n := asking(1, map[string]int{"a": 1})
	s.sync(n, start)
	old := all(s, start)[0]
	s.sync(&v1alpha1.NodePodProbe{}, start)
	s.sync(n, start)
	second := all(s, start)
	if len(second) != 1 {
		t.Fatalf("%d runs of the new probe", len(second))
	}
	s.end(found(second[0], false, start), start)
	s.end(found(old, true, start), start)
	if got := s.findings()[podprobe.Key{UID: "a-0", Name: "m#p"}].State; got != v1alpha1.ProbeFailed {
		t.Errorf("state %s", got)
	}
}

// A shorter period counts at once, a longer one after the next run.
func TestPeriodChange(t *testing.T) {
	s := newSchedule(start.Add(-2 * time.Hour))
	s.sync(asking(3600, map[string]int{"a": 1}), start)
	s.end(found(all(s, start)[0], true, start), start)
	s.sync(asking(5, map[string]int{"a": 1}), start.Add(time.Second))
	if p, later := s.next(start.Add(time.Second)); p != nil || !later.Equal(start.Add(6*time.Second)) {
		t.Errorf("the next run is at %s", later)
	}
	now := start.Add(6 * time.Second)
	s.sync(asking(3600, map[string]int{"a": 1}), now)
	s.end(found(all(s, now)[0], true, now), now)
	if _, later := s.next(now); !later.Equal(now.Add(time.Hour)) {
		t.Errorf("the run after it is at %s", later)
	}
}
