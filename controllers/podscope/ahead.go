package podscope

import (
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

const (
	// settle is how long the regular entries have had a set before the one that was written ahead of it goes: API servers
	// learn of them in their own time.
	settle = time.Second
	// lost is how long a set is waited for whose admission was not the last word on it.
	lost = time.Minute
	// together is how much sooner such an entry goes where another one goes anyway: they come in crowds.
	together = 10 * time.Second
)

// ahead follows the entries that were written ahead of their sets. What is seen again is of another state of its set, or was put
// back by somebody.
type ahead struct {
	all map[aheadKey]*awaited
}

// aheadKey tells states of a set apart.
type aheadKey struct {
	entry string
	mark  scope.Mark
}

type awaited struct {
	// since is when the entry was seen first, and settled when the regular ones had its set.
	since, settled time.Time
	// known says that the set has been among those that there are. It may be gone since.
	known bool
}

// observe takes in which entries there are, and which of their sets.
func (a *ahead) observe(have *admissionregistrationv1.MutatingWebhookConfiguration, sets []*appsv1beta1.SidecarSet, now time.Time) {
	before := a.all
	a.all = map[aheadKey]*awaited{}
	for i := range have.Webhooks {
		if !scope.IsAhead(have.Webhooks[i].Name) {
			continue
		}
		mark, _ := scope.EntryMark(&have.Webhooks[i]) // one that cannot be read is never known
		key := aheadKey{have.Webhooks[i].Name, mark}
		one := before[key]
		if one == nil {
			one = &awaited{since: now}
		}
		one.known = one.known || slices.ContainsFunc(sets, mark.In)
		a.all[key] = one
	}
}

// covered notes that the regular entries have all sets that are known.
func (a *ahead) covered(now time.Time) {
	for _, one := range a.all {
		if one.known && one.settled.IsZero() {
			one.settled = now
		}
	}
}

// over are the names of the entries that are needed no more, and how long it is until there is another one; zero if there is none.
func (a *ahead) over(off bool, now time.Time) (names []string, next time.Duration) {
	some := off
	for _, one := range a.all {
		some = some || one.left(now) <= 0
	}
	for key, one := range a.all {
		left := one.left(now)
		switch {
		case off, left <= 0, some && !one.known && left <= together:
			names = append(names, key.entry)
		case next == 0 || left < next:
			next = left
		}
	}
	slices.Sort(names)
	return names, next
}

// left is how long an entry stays.
func (one *awaited) left(now time.Time) time.Duration {
	switch {
	case !one.known:
		return one.since.Add(lost).Sub(now)
	case one.settled.IsZero():
		return settle // counted from a write that is still to come
	}
	return one.settled.Add(settle).Sub(now)
}

// sweep is the removal of entries as one word.
func (a *ahead) sweep(names []string) string {
	var b strings.Builder
	for _, name := range names {
		for key := range a.all {
			if key.entry == name {
				b.WriteString(name + key.mark.Segments() + "\n")
			}
		}
	}
	return b.String()
}
