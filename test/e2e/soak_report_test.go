//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// soakReport collects what a soak shows.
type soakReport struct {
	mu sync.Mutex
	// counts by group and name, and the longest time of what took time.
	counts map[string]map[string]int
	times  map[string]time.Duration
	// last figures of each process, by the name of its pod, and those of moments with a name.
	last    map[string]soakFigures
	moments map[string]map[string]soakFigures
	most    map[string]soakFigures
	// examples of lines in logs, by message.
	examples map[string]string
	// failures end the test.
	failures []string
	rests    []string
}

func newSoakReport() *soakReport {
	return &soakReport{
		counts:   map[string]map[string]int{},
		times:    map[string]time.Duration{},
		examples: map[string]string{},
		last:     map[string]soakFigures{},
		moments:  map[string]map[string]soakFigures{},
		most:     map[string]soakFigures{},
	}
}

func (r *soakReport) count(group, name string) { r.countAll(group, name, 1) }

func (r *soakReport) countAll(group, name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts[group] == nil {
		r.counts[group] = map[string]int{}
	}
	r.counts[group][name] += n
}

// example counts a line of a log, and keeps the first one of its kind.
func (r *soakReport) example(message, line string) {
	r.count("logged errors", message)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.examples[message] == "" {
		r.examples[message] = line
	}
}

func (r *soakReport) longest(name string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[name] = max(r.times[name], took)
}

func (r *soakReport) fail(format string, arguments ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, time.Now().Format(time.TimeOnly)+" "+fmt.Sprintf(format, arguments...))
}

func (r *soakReport) crashed(pod string, restarts int32) {
	text := fmt.Sprintf("%s restarted %d times by itself", pod, restarts)
	r.mu.Lock()
	known := slices.ContainsFunc(r.failures, func(f string) bool { return strings.HasSuffix(f, text) })
	r.mu.Unlock()
	if !known {
		r.fail("%s", text)
	}
}

// add records figures. Those of a moment with a name are kept as they are.
func (r *soakReport) add(moment string, all map[string]soakFigures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.last, all)
	if moment != "" {
		r.moments[moment] = all
	}
	for _, f := range all {
		m := r.most[f.role]
		r.most[f.role] = soakFigures{
			role:       f.role,
			memory:     max(m.memory, f.memory),
			heap:       max(m.heap, f.heap),
			goroutines: max(m.goroutines, f.goroutines),
		}
	}
}

// quiet records a pause in which nothing changes: no pass may fail in it.
func (r *soakReport) quiet(moment string, took time.Duration, before, after map[string]soakFigures) {
	var cpu, passes float64
	for pod, f := range after {
		was := before[pod]
		cpu += f.cpu - was.cpu
		passes += f.passes - was.passes
		for name, n := range growth(was.errors, f.errors) {
			r.fail("%s, at rest: %s %s grew by %.0f", moment, pod, name, n)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rests = append(r.rests,
		fmt.Sprintf("%s: %s of rest, %.0f passes, %.2f s of CPU in %d processes", moment, took, passes, cpu, len(after)))
}

// worst figures of the processes of a role at a moment.
func (r *soakReport) worst(moment, role string) soakFigures {
	worst := soakFigures{role: role}
	for _, f := range r.moments[moment] {
		if f.role == role {
			worst.memory, worst.heap, worst.goroutines = max(worst.memory, f.memory), max(worst.heap, f.heap),
				max(worst.goroutines, f.goroutines)
			worst.age = max(worst.age, f.age)
		}
	}
	return worst
}

// judge prints the report, and fails the test for each failure, for what the processes have kept, and for a kind that
// did no turn.
func (r *soakReport) judge(t *testing.T, took time.Duration) {
	t.Helper()
	const mebi = 1 << 20
	for _, role := range []string{"leader", "follower", "daemon"} {
		start, end := r.worst("start", role), r.worst("end", role)
		if end.goroutines == 0 {
			r.fail("there is no %s at the end", role)
		}
		// A connection of an API server or a watch that is renewed at this moment makes some more.
		if end.goroutines > start.goroutines*1.1+10 {
			r.fail("the %s has %.0f goroutines at the end, %.0f at the start", role, end.goroutines, start.goroutines)
		}
		if end.memory > start.memory*1.5+16*mebi {
			r.fail("the %s has %.1f MiB at the end, %.1f MiB at the start", role, end.memory/mebi, start.memory/mebi)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.counts["kinds"])) {
		if r.counts["turns"][kind] == 0 {
			r.fail("%s did no turn", kind)
		}
	}
	t.Logf("soak of %s\n%s", took, r)
	for _, failure := range r.failures {
		t.Error(failure)
	}
}

// String is the report as text.
func (r *soakReport) String() string {
	const mebi = 1 << 20
	var b strings.Builder
	for _, moment := range []string{"start", "half", "end"} {
		for _, role := range []string{"leader", "follower", "daemon"} {
			w := r.worst(moment, role)
			fmt.Fprintf(&b, "%-6s %-9s age %8s  memory %6.1f MiB  heap %6.1f MiB  goroutines %4.0f\n",
				moment, role, w.age.Round(time.Second), w.memory/mebi, w.heap/mebi, w.goroutines)
		}
	}
	for _, role := range []string{"leader", "follower", "daemon"} {
		w := r.most[role]
		fmt.Fprintf(&b, "most   %-9s %12s  memory %6.1f MiB  heap %6.1f MiB  goroutines %4.0f\n",
			role, "", w.memory/mebi, w.heap/mebi, w.goroutines)
	}
	for _, line := range r.rests {
		fmt.Fprintln(&b, line)
	}
	var cpu, passes float64
	errors := map[string]float64{}
	for _, f := range r.last {
		cpu += f.cpu
		passes += f.passes
		for name, n := range f.errors {
			errors[name] += n
		}
	}
	fmt.Fprintf(&b, "all %d processes: %.0f passes, %.1f s of CPU\n", len(r.last), passes, cpu)
	for _, group := range slices.Sorted(maps.Keys(r.counts)) {
		if group == "kinds" {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(r.counts[group])) {
			fmt.Fprintf(&b, "%s: %5d %s\n", group, r.counts[group][name], name)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(errors), func(a, b string) int {
		return cmp.Or(cmp.Compare(errors[b], errors[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "errors: %5.0f %s\n", errors[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.times)) {
		fmt.Fprintf(&b, "longest: %8s %s\n", r.times[name].Round(time.Second/10), name)
	}
	for _, message := range slices.Sorted(maps.Keys(r.examples)) {
		fmt.Fprintf(&b, "example of %s: %.600s\n", message, r.examples[message])
	}
	fmt.Fprintf(&b, "failures: %d", len(r.failures))
	return b.String()
}
