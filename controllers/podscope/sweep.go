package podscope

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// lasts is how long a provisional entry stays: the set is stored meanwhile, unless its admission was rejected later,
// and each API server and each replica sees the planned entries in its own time.
const lasts = 5 * time.Second

// sightings are when the provisional entries were seen first, by their names and the states of their sets. An entry
// that appears again is for another state of its set, or was written back.
type sightings map[[2]string]time.Time

// sweep returns the provisional entries that exist, the names of those that have ended, and how long until the next one
// ends. While the entries of all sets are not planned yet, only new ones are noted.
func (before sightings) sweep(
	have *configuration, planned bool, now time.Time,
) (after sightings, ended []string, next time.Duration) {
	after = sightings{}
	for _, e := range entriesOf(have) {
		if !scope.IsProvisional(e.Name) {
			continue
		}
		key := [2]string{e.Name, path(e.ClientConfig)}
		since, found := before[key]
		if !found {
			since = now
		}
		after[key] = since
		switch left := since.Add(lasts).Sub(now); {
		case !planned:
		case left <= 0:
			ended = append(ended, e.Name)
		default:
			next = passes.Sooner(next, left)
		}
	}
	return after, ended, next
}

// path has the state of the set.
func path(c admissionregistrationv1.WebhookClientConfig) string {
	if c.Service != nil {
		return ptr.Deref(c.Service.Path, "")
	}
	return ptr.Deref(c.URL, "")
}

// place is a namespace in the entries, of those that fail closed or of those that are open.
type place struct {
	namespace string
	open      bool
}

// places are the namespaces in the entries, with the time since which no object needs them; zero for one that is
// needed.
type places map[place]time.Time

// keep returns the namespaces of contributions, and those whose last object is gone for less than a duration, which it
// contributes. The next one leaves after the last result.
func (before places) keep(
	all []scope.Contribution, d time.Duration, now time.Time,
) (after places, kept scope.Contribution, next time.Duration) {
	after = places{}
	for _, c := range all {
		for _, name := range c.Closed {
			after[place{name, false}] = time.Time{}
		}
		for _, name := range c.Open {
			after[place{name, true}] = time.Time{}
		}
	}
	for p, gone := range before {
		if _, needed := after[p]; needed {
			continue
		}
		if gone.IsZero() {
			gone = now
		}
		left := gone.Add(d).Sub(now)
		if left <= 0 {
			continue
		}
		after[p] = gone
		next = passes.Sooner(next, left)
		if p.open {
			kept.Open = append(kept.Open, p.namespace)
		} else {
			kept.Closed = append(kept.Closed, p.namespace)
		}
	}
	return after, kept, next
}
