package podprobe

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// Container is the newest container of the name that a probe has.
type Container struct {
	// ID of the container.
	ID string
	// Running, and Ended if it does not run any more.
	Running, Ended bool
	// StartedAt is when it started.
	StartedAt time.Time
}

// Result is what one run of a probe found.
type Result struct {
	Succeeded bool
	// Output is what the probe wrote, or why it failed.
	Output string
}

// Memory is what a node keeps of a probe between two runs. The zero value keeps nothing.
type Memory struct {
	// State, Message and At are the last result that counts, and when it was found. State is empty before the container
	// exists.
	State   v1alpha1.ProbeState
	Message string
	At      time.Time

	container string
	handler   v1alpha1.ContainerProbeSpec
	// row counts the last results, which are all good or all bad.
	row  int32
	good bool
}

// MaxMessage is how long a message is at most, in bytes.
const MaxMessage = 1024

// Look takes note of the container of a probe, before a run. It reports whether the probe is to run now. A nil
// container is one that the runtime does not have.
func (m Memory) Look(p *v1alpha1.ContainerProbe, c *Container, now time.Time) (Memory, bool) {
	if c == nil {
		return m, false
	}
	if m.recalls(c) {
		m.container, m.handler = c.ID, p.Probe
	}
	if m.container != c.ID || !sameHandler(&m.handler, &p.Probe) {
		m = Memory{State: v1alpha1.ProbeUnknown, At: now, container: c.ID, handler: p.Probe}
	}
	switch {
	case c.Ended:
		m.row = 0
		return m.found(v1alpha1.ProbeFailed, fmt.Sprintf("Container(%s) is Non-running", p.ContainerName), now), false
	case !c.Running:
		return m, false
	}
	return m, !now.Before(c.StartedAt.Add(InitialDelay(p)))
}

// sameHandler reports whether two probes ask the same of a container. Their times and thresholds may differ.
func sameHandler(a, b *v1alpha1.ContainerProbeSpec) bool {
	return apiequality.Semantic.DeepEqual(a.ProbeHandler, b.ProbeHandler)
}

// Judge takes note of the result of a run that Look has asked for, in the same container.
func (m Memory) Judge(p *v1alpha1.ContainerProbe, r Result, now time.Time) Memory {
	if m.row == 0 || m.good != r.Succeeded {
		m.row, m.good = 0, r.Succeeded
	}
	m.row = min(m.row, math.MaxInt32-1) + 1
	threshold, state := p.Probe.FailureThreshold, v1alpha1.ProbeFailed
	if r.Succeeded {
		threshold, state = p.Probe.SuccessThreshold, v1alpha1.ProbeSucceeded
	}
	if m.row < max(threshold, 1) {
		return m
	}
	return m.found(state, Cut(r.Output, MaxMessage), now)
}

// found keeps the time of a result that is the same, until it is to be reported again.
func (m Memory) found(state v1alpha1.ProbeState, message string, now time.Time) Memory {
	if m.State != state || m.Message != message || now.Sub(m.At) >= RefreshAfter {
		m.State, m.Message, m.At = state, message, now
	}
	return m
}

// RefreshAfter is how old a result may be before it is reported again, although it has not changed.
const RefreshAfter = 10 * time.Minute

// Period returns how often a probe runs.
func Period(p *v1alpha1.ContainerProbe) time.Duration { return seconds(p.Probe.PeriodSeconds) }

// Timeout returns how long a run of a probe may take.
func Timeout(p *v1alpha1.ContainerProbe) time.Duration { return seconds(p.Probe.TimeoutSeconds) }

// InitialDelay returns how long after the start of its container a probe runs for the first time.
func InitialDelay(p *v1alpha1.ContainerProbe) time.Duration {
	return seconds(p.Probe.InitialDelaySeconds)
}

// seconds are one at least.
func seconds(n int32) time.Duration { return time.Duration(max(n, 1)) * time.Second }

// Cut returns at most so many bytes of a text, without a part of a rune at its end. What is not UTF-8 becomes a
// question mark.
func Cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	end := min(len(text), most)
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// Recall returns the memory of a node that starts, from what it reported before. The state counts for the container
// that Look sees first, if that started before the state was found.
func Recall(s v1alpha1.ContainerProbeState) Memory {
	if !isState(s.State) {
		return Memory{}
	}
	return Memory{State: s.State, Message: s.Message, At: s.LastProbeTime.Time}
}

// recalls reports whether the memory is of the container, although another process found it. Reported times are whole
// seconds.
func (m Memory) recalls(c *Container) bool {
	return m.container == "" && m.State != "" && c.StartedAt.Before(m.At.Add(time.Second))
}
