package podscope

import (
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/scope"
)

const (
	// settle is how long a provisional entry stays after the computed entries have the set: each API server sees them in its own time.
	settle = time.Second
	// lost is how long a provisional entry waits for a set that is not stored, because its admission was rejected later.
	lost = time.Minute
	// together is how much sooner a provisional entry is removed where another one is removed anyway, because they come in bursts.
	together = 10 * time.Second
)

// provisional tracks provisional entries. An entry that appears again is for another state of its set, or was written back.
type provisional struct {
	all map[provisionalKey]*awaited
}

// provisionalKey tells states of a set apart.
type provisionalKey struct {
	entry string
	mark  scope.Mark
}

type awaited struct {
	// since is when the entry was seen first, and settled when the computed entries had its set.
	since, settled time.Time
	// known reports that the set was stored at some time. It may be gone since.
	known bool
}

// observe records which provisional entries exist, and which of their sets.
func (p *provisional) observe(have *admissionregistrationv1.MutatingWebhookConfiguration, sets []*unstructured.Unstructured, now time.Time) {
	before := p.all
	p.all = map[provisionalKey]*awaited{}
	for i := range have.Webhooks {
		if !scope.IsProvisional(have.Webhooks[i].Name) {
			continue
		}
		mark, _ := scope.EntryMark(&have.Webhooks[i]) // an entry without a mark is never known
		key := provisionalKey{have.Webhooks[i].Name, mark}
		one := before[key]
		if one == nil {
			one = &awaited{since: now}
		}
		one.known = one.known || slices.ContainsFunc(sets, func(set *unstructured.Unstructured) bool { return mark.In(set) })
		p.all[key] = one
	}
}

// covered records that the computed entries have all sets that are known.
func (p *provisional) covered(now time.Time) {
	for _, one := range p.all {
		if one.known && one.settled.IsZero() {
			one.settled = now
		}
	}
}

// over returns the names of the entries that have ended, and how long until the next one ends; zero if there is none.
func (p *provisional) over(off bool, now time.Time) (names []string, next time.Duration) {
	some := off
	for _, one := range p.all {
		some = some || one.left(now) <= 0
	}
	for key, one := range p.all {
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

// sweep returns what identifies the removal of entries.
func (p *provisional) sweep(names []string) string {
	var b strings.Builder
	for _, name := range names {
		for key := range p.all {
			if key.entry == name {
				b.WriteString(name + key.mark.Segments() + "\n")
			}
		}
	}
	return b.String()
}
