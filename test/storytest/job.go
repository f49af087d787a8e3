package storytest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/objects"
)

// Job is the story of a job from its creation to rest, or of the rollout of a workload.
type Job struct {
	// Why is the first line of the story.
	Why   string
	Model *objects.Model
	// Object is the job. Text reads it after each pass.
	Object client.Object
	// Events happen before the turn of their number.
	Events map[int]Event
	// Run is a step of the nodes after each pass.
	Run func()
	// Picture describes the cluster, and Counters the status of the job; empty for no line.
	Picture, Counters func() string
	// Readable returns the requests of a pass in an order that does not depend on chance.
	Readable func([]string) []string
}

// Event is what users, nodes and API servers do.
type Event struct {
	// Line describes the event; an event without one belongs to the event before.
	Line string
	Do   func()
}

// Text returns the story, turn by turn: the requests of the reconciler, and the cluster after them. It ends when the
// job is deleted, or when nothing is left to do at any time.
func (j Job) Text(t testing.TB) string {
	t.Helper()
	m, text := j.Model, &strings.Builder{}
	fmt.Fprintf(text, "# %s\n\n", j.Why)
	started, last := m.Clock, 0
	for i := range j.Events {
		last = max(last, i)
	}
	for i := range 200 {
		before := m.Server.Version()
		if e, ok := j.Events[i]; ok {
			e.Do()
			if m.Server.Requests(); e.Line != "" {
				fmt.Fprintf(text, "        # %s\n", e.Line)
			}
		}
		if j.pass(t, text, started) {
			fmt.Fprintf(text, "\nthe job is deleted\n%s\n", j.Picture())
			return text.String()
		}
		j.Run()
		m.Server.Requests()
		switch {
		case m.Server.Version() != before || i < last:
			m.Advance(time.Second)
		case m.Due.IsZero() || !m.Due.After(m.Clock):
			fmt.Fprintf(text, "\n%s\n", j.Picture())
			if counters := j.Counters(); counters != "" {
				fmt.Fprintf(text, "%s\n", counters)
			}
			return text.String()
		default:
			m.Clock = m.Due
		}
	}
	t.Fatalf("the story has no end:\n%s", text)
	return ""
}

// pass reconciles once, and reports whether the job is gone.
func (j Job) pass(t testing.TB, text *strings.Builder, started time.Time) (gone bool) {
	t.Helper()
	m := j.Model
	m.Reconcile()
	requests := m.Server.Requests()
	err := m.Server.Get(t.Context(), client.ObjectKeyFromObject(j.Object), j.Object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	gone = apierrors.IsNotFound(err)
	if len(requests) == 0 {
		return gone
	}
	fmt.Fprintf(text, "%6s  %s\n", m.Clock.Sub(started).Round(time.Second), j.Picture())
	for _, request := range j.Readable(requests) {
		fmt.Fprintf(text, "        %s\n", request)
	}
	if counters := j.Counters(); !gone && counters != "" {
		fmt.Fprintf(text, "        %s\n", counters)
	}
	return gone
}
