package subset

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Arrival is a pod that is being created.
type Arrival struct {
	// Version of the pod.
	Version string
	// ID is the name of the pod, or the UID of its Match.
	ID string
	// Earlier is the UID that an earlier call for the same pod has chosen; empty for none. It counts only if the books
	// have it.
	Earlier string
	// Given is the name of the subset that an earlier call for the same pod has chosen; empty for none. The pod keeps that
	// subset, and is counted there.
	Given string
}

// Departure is a pod whose deletion is admitted.
type Departure struct {
	// Version of the pod.
	Version string
	// Subset that the pod is in.
	Subset string
	// ID of the pod.
	ID string
	// Pod is its name.
	Pod string
}

// Place is the answer to an arrival.
type Place struct {
	// Subset of the pod; nil where no subset has a place.
	Subset *Subset
	// ID by which the books have the pod, if they count it.
	ID string
}

// Books are the versioned statuses of a WorkloadSpread, and what admission adds to them. They are no copy of the
// object, which they only read.
type Books struct {
	spread *Spread
	limits []int32
	totals map[string]*Entry
	open   map[string]*page
}

// page has the entries of one version, in the order of the spec.
type page struct {
	entries []Entry
	changed bool
}

// Open opens the books in the status of a WorkloadSpread.
func Open(ws *Spread, limits []int32) *Books {
	return &Books{spread: ws, limits: limits, totals: byName(ws.Status.SubsetStatuses), open: map[string]*page{}}
}

func byName(entries []Entry) map[string]*Entry {
	all := make(map[string]*Entry, len(entries))
	for i := range entries {
		if all[entries[i].Name] == nil {
			all[entries[i].Name] = &entries[i]
		}
	}
	return all
}

// page returns the entries of a version.
func (b *Books) page(version string) *page {
	if p := b.open[version]; p != nil {
		return p
	}
	stored := byName(b.spread.Status.VersionedSubsetStatuses[version])
	p := &page{entries: make([]Entry, len(b.spread.Spec.Subsets))}
	for i := range b.spread.Spec.Subsets {
		e := &p.entries[i]
		e.Name = b.spread.Spec.Subsets[i].Name
		if old := stored[e.Name]; old != nil {
			*e = *old
		} else if total := b.totals[e.Name]; total != nil {
			e.Conditions = total.Conditions
		}
		e.MissingReplicas = places(b.limits[i], e)
	}
	b.open[version] = p
	return p
}

// places returns how many places an entry has.
func places(limit int32, e *Entry) int32 {
	return Missing(limit, int(e.Replicas), min(len(e.DeletingPods), int(max(e.Replicas, 0))), len(e.CreatingPods))
}

// Admit gives an arrival the subset of an earlier call, or else the first subset that is schedulable and has a place. A
// pod whose deletion is recorded is another one, also under the same name.
func (b *Books) Admit(a Arrival, now time.Time) Place {
	subsets, id := b.spread.Spec.Subsets, cmp.Or(a.Earlier, a.ID)
	if len(subsets) == 1 && subsets[0].MaxReplicas == nil {
		return Place{&subsets[0], id}
	}
	p := b.page(a.Version)
	if place, ok := p.recorded(a, subsets); ok {
		return place
	}
	for i := range p.entries {
		e := &p.entries[i]
		given := a.Given != "" && a.Given == e.Name
		if !given && (a.Given != "" || !Schedulable(b.totals[e.Name])) {
			continue
		}
		if e.MissingReplicas == Unlimited {
			return Place{&subsets[i], id}
		}
		if given || e.MissingReplicas > 0 {
			e.CreatingPods = with(e.CreatingPods, a.ID, now)
			e.MissingReplicas = max(e.MissingReplicas-1, 0)
			p.changed = true
			return Place{&subsets[i], a.ID}
		}
	}
	return Place{}
}

// recorded returns the place of an arrival that the page has.
func (p *page) recorded(a Arrival, subsets []Subset) (Place, bool) {
	for i := range p.entries {
		if a.Given != "" && a.Given != p.entries[i].Name {
			continue
		}
		for _, id := range []string{a.ID, a.Earlier} {
			if _, creating := p.entries[i].CreatingPods[id]; creating && id != "" {
				return Place{&subsets[i], id}, true
			}
		}
	}
	return Place{}, false
}

// Unrecorded returns the subset of an arrival that cannot be recorded: that of an earlier call, or else the first
// schedulable one without a limit; nil where there is none.
func Unrecorded(ws *Spread, a Arrival) *Subset {
	if given := Named(ws, a.Given); given != nil {
		return given
	}
	totals := byName(ws.Status.SubsetStatuses)
	for i := range ws.Spec.Subsets {
		if s := &ws.Spec.Subsets[i]; s.MaxReplicas == nil && Schedulable(totals[s.Name]) {
			return s
		}
	}
	return nil
}

// Named returns a subset by its name; nil where there is none.
func Named(ws *Spread, name string) *Subset {
	for i := range ws.Spec.Subsets {
		if s := &ws.Spec.Subsets[i]; name != "" && s.Name == name {
			return s
		}
	}
	return nil
}

// Depart records that the deletion of a pod was admitted.
func (b *Books) Depart(d Departure, now time.Time) {
	if _, ok := b.spread.Status.VersionedSubsetStatuses[d.Version]; !ok && b.open[d.Version] == nil {
		return
	}
	p := b.page(d.Version)
	i := slices.IndexFunc(p.entries, func(e Entry) bool { return e.Name == d.Subset })
	if i < 0 || b.limits[i] < 0 {
		return
	}
	e := &p.entries[i]
	if has(e, d.ID) || has(e, d.Pod) {
		return
	}
	e.DeletingPods = with(e.DeletingPods, d.Pod, now)
	e.MissingReplicas = places(b.limits[i], e)
	p.changed = true
}

// has reports whether the books of a subset have a pod.
func has(e *Entry, id string) bool {
	_, creating := e.CreatingPods[id]
	_, deleting := e.DeletingPods[id]
	return creating || deleting
}

// Changed reports whether there is something to write.
func (b *Books) Changed() bool {
	for _, p := range b.open {
		if p.changed {
			return true
		}
	}
	return false
}

// Status returns the status of the WorkloadSpread with what admission added.
func (b *Books) Status() appsv1beta1.WorkloadSpreadStatus {
	status := b.spread.Status
	status.VersionedSubsetStatuses = maps.Clone(status.VersionedSubsetStatuses)
	for version, p := range b.open {
		if !p.changed {
			continue
		}
		if status.VersionedSubsetStatuses == nil {
			status.VersionedSubsetStatuses = map[string][]Entry{}
		}
		status.VersionedSubsetStatuses[version] = slices.Clone(p.entries)
	}
	return status
}

// with returns a map with one name more.
func with(names map[string]metav1.Time, name string, now time.Time) map[string]metav1.Time {
	names = maps.Clone(names)
	if names == nil {
		names = map[string]metav1.Time{}
	}
	names[name] = stamp(now)
	return names
}

// stamp is a time as the API server stores it.
func stamp(now time.Time) metav1.Time { return metav1.NewTime(now.UTC().Truncate(time.Second)) }
