package entries

import (
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/steady"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// DefaultMostPause is the longest pause of a zero Policy.
	DefaultMostPause = time.Minute
	// catchUp is the time for the cache to show a write.
	catchUp = 200 * time.Millisecond
	// visible is the time for the cache to show a pod, and an edit of a configuration.
	visible = 2 * time.Second
)

type (
	configuration = admissionregistrationv1.MutatingWebhookConfiguration
	entry         = admissionregistrationv1.MutatingWebhook
	requirement   = metav1.LabelSelectorRequirement
)

// Policy is how entries are kept.
type Policy struct {
	// Configuration is the name of the configuration of pods.
	Configuration string
	// Client is how API servers reach the webhook, without a CA where there is a service.
	Client admissionregistrationv1.WebhookClientConfig
	// Disruptions are entries of disruptions, and not of new pods: a ValidatingWebhookConfiguration in the form of the
	// other kind.
	Disruptions bool
	// Off removes all entries.
	Off bool
	// MostPause is the longest pause before entries that another writer keeps changing are written again. Default
	// DefaultMostPause.
	MostPause time.Duration
}

// Observation is what a pass is decided upon. Next changes nothing of it.
type Observation struct {
	// Pods, Provisional and Main are the configurations; nil for one that does not exist.
	Pods, Provisional, Main *admissionregistrationv1.MutatingWebhookConfiguration
	// Want is the planned scope, and Steady what it was planned from: its state counts once the entries are as planned.
	Want   scope.Scope
	Steady steady.Result
	// Sets are all SidecarSets.
	Sets []*unstructured.Unstructured
	// Now is the time of the pass.
	Now time.Time
}

// State is what a pass hands on to the next one. The zero value is that of a new process.
type State struct {
	// Steady is what the entries were planned from.
	Steady steady.State

	repairs, sweeps pace
	waiting         map[waitingKey]waiting
	// window is the time without the entries, after which pods are looked for.
	window scope.Window
}

// Pass is what is to be done.
type Pass struct {
	// Write is nil where nothing is to be written.
	Write *write.Write
	// Notes report what a user should know about the entries.
	Notes []note.Note
	// Announce is reported once the write is made.
	Announce []note.Note
	// Window is a time without the entries that is over: pods of that time may lack their sets. Zero for none.
	Window scope.Window
	// Planned reports that the entries of pods are as planned.
	Planned bool
	// RequeueAfter is when to look again without an event; zero for never.
	RequeueAfter time.Duration
	// State is for the next pass. Written replaces it where the write was made.
	State, Written State
}

// Next returns the next write for the configurations.
func Next(o Observation, s State, p Policy) (Pass, error) {
	if p.MostPause == 0 {
		p.MostPause = DefaultMostPause
	}
	pass := Pass{
		Notes: slices.Concat(o.Want.Notes, o.Steady.Notes, policies(o.Pods, o.Want.Entries), catchAlls(o.Main, p)),
	}
	s.waiting = track(s.waiting, o)
	s.repairs, s.sweeps = s.repairs.seen(version(o.Pods)), s.sweeps.seen(version(o.Provisional))
	c, err := compare(o.Pods, o.Want.Entries)
	if err != nil {
		return Pass{}, err
	}
	if c.needed() {
		return pass.repair(o, s, p, c), nil
	}
	pass.Planned = true
	s.repairs.undoneAt, s.Steady = time.Time{}, o.Steady.State
	s.waiting = covered(s.waiting, o.Now)
	over := s.window.Until.Add(visible).Sub(o.Now)
	if !s.window.Until.IsZero() && over <= 0 {
		pass.Window, s.window = s.window, scope.Window{}
	}
	pass = pass.sweep(o, s, p)
	if !s.window.Until.IsZero() {
		pass.RequeueAfter = requeue.Sooner(pass.RequeueAfter, over)
	}
	pass.RequeueAfter = requeue.Sooner(pass.RequeueAfter, o.Steady.RequeueAfter)
	return pass, nil
}

// missingSince returns the time since which the entries are missing; zero where it is not known. It is earlier than the
// event of it.
func missingSince(o Observation, s State) time.Time {
	switch _, known := readRecord(o.Pods); {
	case !s.repairs.undoneAt.IsZero():
		return s.repairs.undoneAt.Add(-visible)
	case !s.repairs.last.IsZero():
		return o.Now.Add(-visible)
	case o.Pods != nil && !known: // nothing has written entries yet, as after a reset or an installation
		return o.Pods.CreationTimestamp.Time
	}
	return time.Time{}
}

// repair writes the entries of pods.
func (pass Pass) repair(o Observation, s State, p Policy, c change) Pass {
	undone := s.repairs.undone(c.wanted)
	if undone && s.repairs.undoneAt.IsZero() {
		s.repairs.undoneAt = o.Now
	}
	pass.State, pass.Written = s, s
	if !c.trust(p.Client, o) {
		pass.Notes = append(pass.Notes, note.Note{
			Level: note.Blocked, Code: NoteNoAuthority, Object: p.Configuration,
			Text: "no pods are sent yet: no configuration has a CA for the service of the webhook",
		})
		return pass
	}
	if pass.RequeueAfter = s.repairs.wait(version(o.Pods), c.wanted,
		rhythm{between, p.MostPause}, o.Now); pass.RequeueAfter > 0 {
		return pass
	}
	pass.Write = c.write(o, p.Configuration)
	pass.Written.Steady = o.Steady.State
	pass.Written.repairs = s.repairs.wrote(version(o.Pods), c.wanted, o.Now)
	if since := missingSince(o, s); !since.IsZero() && (undone || len(c.edited) > 0 || s.repairs.last.IsZero()) {
		if w := s.window; !w.Since.IsZero() {
			since = w.Since
		}
		pass.Written.window = scope.Window{Since: since, Until: o.Now}
	}
	if undone || len(c.edited) > 0 {
		pass.Announce = []note.Note{undoneNote(p.Configuration, c.edited)}
	}
	return pass
}

// sweep removes provisional entries that have ended.
func (pass Pass) sweep(o Observation, s State, p Policy) Pass {
	over, next := ended(s.waiting, p.Off, o.Now)
	pass.State, pass.Written, pass.RequeueAfter = s, s, next
	if len(over) == 0 {
		return pass
	}
	word := identity(s.waiting, over)
	if pass.RequeueAfter = s.sweeps.wait(version(o.Provisional), word,
		rhythm{betweenSweeps, p.MostPause}, o.Now); pass.RequeueAfter > 0 {
		return pass
	}
	pass.Write = removal(o.Provisional, over)
	pass.Written.sweeps = s.sweeps.wrote(version(o.Provisional), word, o.Now)
	return pass
}

// version identifies the state of a configuration.
func version(c *configuration) string {
	if c == nil {
		return "missing"
	}
	return c.ResourceVersion
}
