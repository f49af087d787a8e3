package podscope

import (
	"slices"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// snapshot is what a pass reads. It changes nothing of it.
type snapshot struct {
	// pods, provisional and main are the configurations; nil for one that does not exist.
	pods, provisional, main *configuration
	// contributions of the sources.
	contributions []scope.Contribution
	now           time.Time
}

// state is what a pass hands on to the next one. The zero value is that of a new process.
type state struct {
	places      places
	provisional sightings
	// writes pace those of the entries, and swept is when provisional ones were removed last.
	writes pace
	swept  time.Time
}

// pass is what is to be done.
type pass struct {
	// write is nil where nothing is to be written.
	write *write.Write
	// want are the entries of pods.
	want []entry
	// notes report what a user should know about the entries. announce is reported once the write is made.
	notes, announce []note.Note
	// planned reports that the entries of pods are as wanted.
	planned bool
	// requeueAfter is when to look again without an event; zero for never.
	requeueAfter time.Duration
	// state is for the next pass. written replaces it where the write was made.
	state, written state
}

// planner decides the writes of a configuration of pods, one at a time.
type planner struct {
	options Options
	// disruptions are the entries of disruptions, and not of new pods: a ValidatingWebhookConfiguration in the form of
	// the other kind.
	disruptions bool
}

// next returns the next write for the configurations.
func (p planner) next(o snapshot, s state) pass {
	var kept scope.Contribution
	var next pass
	if !p.options.Off {
		s.places, kept, next.requeueAfter = s.places.keep(o.contributions, p.options.KeepRemoved, o.now)
	}
	want := p.want(append(slices.Clip(o.contributions), kept))
	next.want = want.Entries
	next.notes = slices.Concat(want.Notes, policies(o.pods, want.Entries), catchAlls(o.main, p.disruptions))
	client := p.options.client()
	ca := scope.Authority(client, o.main, o.pods)
	entries, names, isNew := compare(o.pods, want.Entries, ca)
	next.planned = len(names) == 0
	var ended []string
	var left time.Duration
	s.provisional, ended, left = s.provisional.sweep(o.provisional, next.planned, o.now)
	next.requeueAfter = passes.Sooner(next.requeueAfter, left)
	next.state, next.written = s, s
	switch {
	case isNew && client.Service != nil && len(ca) == 0:
		next.notes = append(next.notes, note.Note{
			Level: note.Blocked, Code: noteNoAuthority, Object: p.options.Configuration,
			Text: "no pods are sent yet: no configuration has a CA for the service of the webhook",
		})
	case !next.planned:
		p.change(&next, o, entries, names)
	case len(ended) > 0:
		p.sweep(&next, o, ended)
	}
	return next
}

// want returns the entries that contributions ask for.
func (p planner) want(all []scope.Contribution) scope.Scope {
	if p.options.Off {
		return scope.Scope{}
	}
	in := scope.Input{Client: p.options.client(), Namespace: p.options.Namespace, Contributions: all}
	if !p.disruptions {
		return scope.Plan(in)
	}
	in.Client = p.options.reach().At(scope.DisruptionPath)
	return scope.Disruptions(in, scope.Operations{
		Deletes: !p.options.NoDeletes, Updates: p.options.Updates, Exempt: p.options.ExemptUsers,
	})
}

// change writes the entries of pods, unless it must wait.
func (p planner) change(next *pass, o snapshot, entries []entry, names []string) {
	writes := &next.state.writes
	if left := writes.wait(next.want, o.now); left > 0 {
		next.requeueAfter = passes.Sooner(next.requeueAfter, left)
		return
	}
	next.write = writeOf(o.pods, o.main, p.options.Configuration, entries)
	next.written.writes = writes.wrote(next.want, o.now)
	if writes.undone(next.want) {
		next.announce = []note.Note{{
			Code: noteUndone, Object: p.options.Configuration, Text: "another writer changed or removed entries of the pod " +
				"webhook; they were written again, with pauses that double while this repeats: " + strings.Join(names, ", "),
		}}
	}
}

// sweep removes provisional entries that have ended, unless it must wait.
func (planner) sweep(next *pass, o snapshot, ended []string) {
	if wait := next.state.swept.Add(interval).Sub(o.now); wait > 0 {
		next.requeueAfter = passes.Sooner(next.requeueAfter, wait)
		return
	}
	left := slices.DeleteFunc(slices.Clone(o.provisional.Webhooks), func(e entry) bool {
		return slices.Contains(ended, e.Name)
	})
	next.write = writeOf(o.provisional, nil, o.provisional.Name, left)
	next.written.swept = o.now
}
