package steady

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// DefaultKeep is Keep of a zero Policy.
	DefaultKeep = time.Minute
	// DefaultChanges is Changes of a zero Policy.
	DefaultChanges = 20
	// every is the time after which a namespace may change once more.
	every = 15 * time.Second
	// mostKept and mostKeptLetters are what the removed selections of a namespace may take up in the entries, as its
	// budgets may.
	mostKept        = 32
	mostKeptLetters = 4 << 10
)

// NoteWidened is a namespace whose selections change so often that all of its pods are sent.
const NoteWidened = "NamespaceWidened"

// Policy is how often what is contributed may change.
type Policy struct {
	// Keep is how long a selection stays that is gone. Default DefaultKeep.
	Keep time.Duration
	// Changes is how often in a row a namespace may add selections before all of its pods are sent. Default
	// DefaultChanges.
	Changes int
}

// State is what a pass hands on to the next one. The zero value is that of a new process, for which the first
// contributions are no change.
type State struct {
	begun  bool
	units  map[unit]claim
	frames map[frame]*frame
}

// Result is what is contributed.
type Result struct {
	// Contributions replace those of the input.
	Contributions []scope.Contribution
	// Widened are the namespaces of which all pods are sent.
	Widened []string
	// Notes report them.
	Notes []note.Note
	// RequeueAfter is when less is contributed without an event; zero for never.
	RequeueAfter time.Duration
	// State is for the next pass.
	State State
}

// Next returns what is contributed, which is at least the input.
func Next(all []scope.Contribution, s State, p Policy, now time.Time) Result {
	p.Keep, p.Changes = cmp.Or(p.Keep, DefaultKeep), cmp.Or(p.Changes, DefaultChanges)
	wanted, frames := split(all, s.frames)
	at := moment{Policy: p, now: now, begun: s.begun}
	r := Result{State: State{begun: true, frames: frames, units: make(map[unit]claim, len(wanted))}}
	for u := range wanted {
		r.State.units[u] = at.next(s.units[u], wanted[u])
	}
	for u, before := range s.units {
		if _, known := wanted[u]; known {
			continue
		}
		if after := at.next(before, nil); after.widened || len(after.parts) > 0 || after.spent.After(now) {
			r.State.units[u] = after
		}
	}
	r.Contributions = join(all, r.State.units)
	var earliest time.Time
	for u, c := range r.State.units {
		if c.widened {
			r.Widened = append(r.Widened, u.namespace)
		}
		if t := at.due(c); !t.IsZero() && (earliest.IsZero() || t.Before(earliest)) {
			earliest = t
		}
	}
	if !earliest.IsZero() {
		r.RequeueAfter = max(earliest.Sub(now), time.Millisecond)
	}
	slices.Sort(r.Widened)
	r.Widened = slices.Compact(r.Widened)
	r.Notes = notes(r.Widened)
	return r
}

// notes name at most a few of the namespaces.
func notes(widened []string) []note.Note {
	const most = 5
	if len(widened) == 0 {
		return nil
	}
	names, more := widened, ""
	if n := len(widened); n > most {
		names, more = widened[:most], fmt.Sprintf(" and %d more", n-most)
	}
	const text = "all pods of %s%s are sent: what is selected there changes too often for entries of its own, " +
		"until it is calm for minutes"
	return []note.Note{{
		Level: note.Info, Code: NoteWidened, Object: "namespaces", Text: fmt.Sprintf(text, strings.Join(names, ", "), more),
	}}
}

// unit is what of a namespace has one failure policy.
type unit struct {
	namespace string
	ignore    bool
}

// claim is what the entries have of a unit.
type claim struct {
	parts map[key]part
	// spent is until when earlier changes count, which take up every each.
	spent time.Time
	// widened has all pods of the namespace sent.
	widened bool
}

// moment is a time at which claims are made.
type moment struct {
	Policy

	now   time.Time
	begun bool
}

// next returns the claim after what is wanted is observed. It shares what does not change.
func (m moment) next(c claim, wanted map[key]part) claim {
	after := claim{parts: wanted, spent: c.spent, widened: c.widened}
	if m.begun && adds(c.parts, wanted) {
		after.spent = later(c.spent, m.now).Add(every)
		after.widened = c.widened || after.spent.Sub(m.now) > m.most()
	}
	if after.widened && !m.rounded(after.spent).After(m.now) {
		after.widened = false
	}
	if !after.widened {
		var fits bool
		if after.parts, fits = m.keep(c.parts, wanted); !fits {
			after.spent, after.widened = m.now.Add(m.most()), true
		}
	}
	if after.widened {
		after.parts = wanted
		if most := m.now.Add(m.most()); after.spent.After(most) {
			after.spent = most
		}
	}
	return after
}

// most is the time that the changes of a namespace may take up.
func (m moment) most() time.Duration { return time.Duration(m.Changes) * every }

// keep returns what is wanted, and what is gone not long ago; false if that is too much.
func (m moment) keep(before, wanted map[key]part) (map[key]part, bool) {
	var all map[key]part
	kept, letters := 0, 0
	for k, p := range before {
		if _, is := wanted[k]; is {
			continue
		}
		if p.gone.IsZero() {
			p.gone = m.now
			if p.selection != nil { // its array holds those of all namespaces
				one := *p.selection
				p.selection = &one
			}
		}
		if !m.over(p.gone).After(m.now) {
			continue
		}
		if all == nil {
			if all = maps.Clone(wanted); all == nil {
				all = map[key]part{}
			}
		}
		all[k] = p
		kept, letters = kept+1, letters+len(k.of)
	}
	if all == nil {
		return wanted, true
	}
	return all, kept <= mostKept && letters <= mostKeptLetters
}

// over is when a selection that is gone is contributed no longer. Selections go together, so that they cost few writes.
func (m moment) over(gone time.Time) time.Time { return m.rounded(gone.Add(m.Keep)) }

// rounded returns the next of the moments at which less may be contributed.
func (m moment) rounded(t time.Time) time.Time {
	grid := m.Keep / 6
	if down := t.Truncate(grid); down.Before(t) {
		return down.Add(grid)
	}
	return t
}

// due is when less of a claim is contributed; zero for never.
func (m moment) due(c claim) time.Time {
	if c.widened {
		return m.rounded(c.spent)
	}
	var due time.Time
	for _, p := range c.parts {
		if p.gone.IsZero() {
			continue
		}
		if t := m.over(p.gone); due.IsZero() || t.Before(due) {
			due = t
		}
	}
	return due
}

// adds reports whether something is wanted that was not contributed.
func adds(before, wanted map[key]part) bool {
	for k := range wanted {
		if _, is := before[k]; !is {
			return true
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
