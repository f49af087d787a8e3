package podprobe_test

import (
	"math/rand"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

// step is what happens to a probe in a second: its container, and the result if it runs.
type step struct {
	container string // an ID; none, or the container has ended for -
	good      bool
	// want is the state and the message afterwards, and whether the probe ran.
	want string
	ran  bool
}

func askedProbe() *v1alpha1.ContainerProbe {
	p := execOf("m#a", "true")
	return &v1alpha1.ContainerProbe{Name: p.Name, ContainerName: p.ContainerName, Probe: p.Probe}
}

func TestMemory(t *testing.T) {
	cases := map[string]struct {
		why              string
		failure, success int32
		delay            int32
		steps            []step
	}{
		"no container": {"nothing is known, acceptance 5 of the daemon", 0, 0, 0, []step{{container: "", want: ""}}},
		"ended": {"a container that has ended fails without a run", 3, 0, 0, []step{
			{container: "c1", good: true, want: "Succeeded ok", ran: true},
			{container: "-", want: "Failed Container(main) is Non-running"},
			{container: "", want: "Failed Container(main) is Non-running"},
		}},
		"initial delay": {"a probe waits for its delay after the start of the container", 1, 1, 3, []step{
			{container: "c1", want: "Unknown "},
			{container: "c1", want: "Unknown "},
			{container: "c1", good: true, want: "Succeeded ok", ran: true},
			{container: "c2", want: "Unknown "},
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := askedProbe()
			p.Probe.FailureThreshold, p.Probe.SuccessThreshold, p.Probe.InitialDelaySeconds = c.failure, c.success, c.delay
			now, memory, started := time.Unix(1_800_000_000, 0), podprobe.Memory{}, map[string]time.Time{}
			last := ""
			for i, s := range c.steps {
				var container *podprobe.Container
				switch s.container {
				case "":
				case "-":
					container = &podprobe.Container{ID: last, Ended: true, StartedAt: started[last]}
				default:
					if last = s.container; started[last].IsZero() {
						started[last] = now.Add(-time.Second)
					}
					container = &podprobe.Container{ID: last, Running: true, StartedAt: started[last]}
				}
				var runs bool
				if memory, runs = memory.Look(p, container, now); runs {
					r := podprobe.Result{Succeeded: s.good, Output: "no"}
					if s.good {
						r.Output = "ok"
					}
					memory = memory.Judge(p, r, now)
				}
				got := string(memory.State)
				if got != "" {
					got += " " + memory.Message
				}
				if runs != s.ran || got != s.want {
					t.Errorf("%s: step %d ran %t with %q, want %t with %q", c.why, i, runs, got, s.ran, s.want)
				}
				now = now.Add(time.Second)
			}
		})
	}
}

// A daemon that starts goes on with what it reported, if the container is the same one.
func TestRecall(t *testing.T) {
	at, p := time.Unix(1_800_000_000, 0), askedProbe()
	reported := stateOf("m#a", "Succeeded", "ok")
	for started, want := range map[time.Duration]v1alpha1.ProbeState{
		-time.Minute: "Succeeded", 900 * time.Millisecond: "Succeeded", time.Minute: "Unknown",
	} {
		m, _ := podprobe.Recall(reported).Look(p,
			&podprobe.Container{ID: "c1", Running: true, StartedAt: at.Add(started)}, at.Add(2*time.Minute))
		if m.State != want {
			t.Errorf("a container that started %s after the report has %s, want %s", started, m.State, want)
		}
		if m, _ = m.Look(p, &podprobe.Container{ID: "c2", Running: true, StartedAt: at.Add(-time.Hour)},
			at.Add(2*time.Minute)); m.State != v1alpha1.ProbeUnknown {
			t.Errorf("another container has %s", m.State)
		}
	}
	if m := podprobe.Recall(v1alpha1.ContainerProbeState{State: "Odd"}); m.State != "" {
		t.Errorf("an unknown state is recalled as %+v", m)
	}
}

// Another handler forgets the result, another period does not.
func TestMemoryOfChangedProbe(t *testing.T) {
	now, p := time.Unix(1_800_000_000, 0), askedProbe()
	c := &podprobe.Container{ID: "c1", Running: true}
	m, _ := podprobe.Memory{}.Look(p, c, now)
	m = m.Judge(p, podprobe.Result{Succeeded: true}, now)
	p.Probe.PeriodSeconds = 7
	if m, _ = m.Look(p, c, now); m.State != v1alpha1.ProbeSucceeded {
		t.Errorf("another period: %s", m.State)
	}
	p.Probe.Exec.Command = nil
	p = askedProbe()
	p.Probe.Exec.Command = []string{"false"}
	if m, _ = m.Look(p, c, now); m.State != v1alpha1.ProbeUnknown {
		t.Errorf("another handler: %s", m.State)
	}
}

// A result that stays the same is reported again after ten minutes, acceptance 16.
func TestMemoryRefreshes(t *testing.T) {
	p, c, start := askedProbe(), &podprobe.Container{ID: "c1", Running: true}, time.Unix(1_800_000_000, 0)
	m, _ := podprobe.Memory{}.Look(p, c, start)
	for at, want := range map[time.Duration]time.Duration{0: 0, 10 * time.Minute: 10 * time.Minute} {
		first := m.Judge(p, podprobe.Result{Succeeded: true, Output: "ok"}, start)
		for _, early := range []time.Duration{time.Second, 10*time.Minute - time.Second} {
			if first = first.Judge(p, podprobe.Result{Succeeded: true, Output: "ok"}, start.Add(early)); !first.At.Equal(start) {
				t.Errorf("after %s the same result is of %s", early, first.At)
			}
		}
		if first = first.Judge(p,
			podprobe.Result{Succeeded: true, Output: "ok"}, start.Add(at)); !first.At.Equal(start.Add(want)) {
			t.Errorf("after %s the result is of %s", at, first.At)
		}
	}
	changed := m.Judge(p, podprobe.Result{Succeeded: true, Output: "ok"}, start).Judge(p,
		podprobe.Result{Succeeded: true, Output: "2"}, start.Add(time.Second))
	if changed.Message != "2" || !changed.At.Equal(start.Add(time.Second)) {
		t.Errorf("another message: %+v", changed)
	}
}

// What the reference counts, in a naive way: the results of one container in a list, of which the last ones decide.
func TestMemoryAgainstOracle(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	for range 300 {
		p := askedProbe()
		p.Probe.FailureThreshold, p.Probe.SuccessThreshold = int32(r.Intn(4)), int32(r.Intn(4))
		memory, now := podprobe.Memory{}, time.Unix(1_800_000_000, 0)
		id, results, want := "c0", []bool(nil), v1alpha1.ProbeUnknown
		for range 40 {
			if r.Intn(10) == 0 {
				id, results, want = id+"x", nil, v1alpha1.ProbeUnknown
			}
			good := r.Intn(2) == 0
			results = append(results, good)
			threshold, state := max(int(p.Probe.FailureThreshold), 1), v1alpha1.ProbeFailed
			if good {
				threshold, state = max(int(p.Probe.SuccessThreshold), 1), v1alpha1.ProbeSucceeded
			}
			if n := len(results); n >= threshold {
				same := true
				for _, was := range results[n-threshold:] {
					same = same && was == good
				}
				if same {
					want = state
				}
			}
			memory, _ = memory.Look(p, &podprobe.Container{ID: id, Running: true}, now)
			if memory = memory.Judge(p, podprobe.Result{Succeeded: good}, now); memory.State != want {
				t.Fatalf("seed %d: results %v give %s, want %s", seed, results, memory.State, want)
			}
			now = now.Add(time.Second)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("plain", 3)
	f.Add("zwölf", 3)
	f.Add(strings.Repeat("世界", 9), 7)
	f.Add("\xff\xfe\xe4\xb8", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(most, 0) % 2000
		got := podprobe.Cut(text, most)
		if len(got) > most || !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) = %q", text, most, got)
		}
		if utf8.ValidString(text) &&
			(!strings.HasPrefix(text, got) || len(text) <= most && got != text || len(text) > most && len(got) < most-3) {
			t.Errorf("Cut(%q, %d) = %q lost too much", text, most, got)
		}
	})
}
