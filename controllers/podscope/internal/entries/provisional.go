package entries

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// settle is how long a provisional entry stays after the planned entries have the set: each API server and each
	// replica sees them in its own time.
	settle = time.Second
	// lost is how long a provisional entry waits for a set that is not stored, because the admission of the set was
	// rejected later, or because no API server has sent it.
	lost = 5 * time.Second
)

// waitingKey distinguishes the states of a set. An entry that appears again is for another state of its set, or was
// written back.
type waitingKey struct {
	entry string
	mark  scope.Mark
}

type waiting struct {
	// since is when the entry was seen first, and settled when the planned entries had its set.
	since, settled time.Time
	// known reports that the set was stored at some time. The set may be gone since.
	known bool
}

// track returns which provisional entries exist, and which of their sets.
func track(before map[waitingKey]waiting, o Observation) map[waitingKey]waiting {
	all := map[waitingKey]waiting{}
	if o.Provisional == nil {
		return all
	}
	for i := range o.Provisional.Webhooks {
		if !scope.IsProvisional(o.Provisional.Webhooks[i].Name) {
			continue
		}
		mark, _ := scope.EntryMark(&o.Provisional.Webhooks[i]) // an entry without a mark is never known
		key := waitingKey{o.Provisional.Webhooks[i].Name, mark}
		one, seen := before[key]
		if !seen {
			one = waiting{since: o.Now}
		}
		one.known = one.known || slices.ContainsFunc(o.Sets, func(set *unstructured.Unstructured) bool {
			return mark.In(set)
		})
		all[key] = one
	}
	return all
}

// covered records that the planned entries have all sets that are known.
func covered(all map[waitingKey]waiting, now time.Time) map[waitingKey]waiting {
	next := maps.Clone(all)
	for key, one := range next {
		if one.known && one.settled.IsZero() {
			one.settled = now
			next[key] = one
		}
	}
	return next
}

// ended returns the names of the entries that have ended, and how long until the next one ends; zero if there is none.
func ended(all map[waitingKey]waiting, off bool, now time.Time) (names []string, next time.Duration) {
	for key, one := range all {
		switch left := one.left(now); {
		case off, left <= 0:
			names = append(names, key.entry)
		case next == 0 || left < next:
			next = left
		}
	}
	slices.Sort(names)
	return names, next
}

// left is how long an entry stays.
func (w waiting) left(now time.Time) time.Duration {
	switch {
	case !w.known:
		return w.since.Add(lost).Sub(now)
	case w.settled.IsZero():
		return settle // counted from a write that is still to come
	}
	return w.settled.Add(settle).Sub(now)
}

// identity returns what identifies the removal of entries.
func identity(all map[waitingKey]waiting, names []string) string {
	var lines []string
	for key := range all {
		if slices.Contains(names, key.entry) {
			lines = append(lines, key.entry+key.mark.Segments())
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// removal removes entries, the last one first, so that the indexes of the others stay.
func removal(have *configuration, names []string) *write.Write {
	ops := []write.Op{write.Test("/metadata/resourceVersion", have.ResourceVersion)}
	for i, h := range slices.Backward(have.Webhooks) {
		if slices.Contains(names, h.Name) {
			ops = append(ops, write.Remove(fmt.Sprintf("/webhooks/%d", i)))
		}
	}
	return write.JSON(have, write.Main, ops...)
}
