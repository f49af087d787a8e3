package subset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// CreatingTimeout is how long an admitted pod that no event reports holds its place.
	CreatingTimeout = 30 * time.Second
	// DeletingTimeout is how long an active pod counts as deleted after its deletion was admitted.
	DeletingTimeout = 15 * time.Second
	// UnschedulableFor is how long a subset takes no pods after the last pod without a node.
	UnschedulableFor = 5 * time.Minute
	// MaxReschedules is how many pods without a node one pass deletes.
	MaxReschedules = 100
)

// Observation is what Status and Costs look at.
type Observation struct {
	Spread *Spread
	Limits []int32
	// Members are all pods of the target that the filter selects.
	Members []Member
	// Newest is the version of pods that the target creates.
	Newest string
	Now    time.Time
}

// Report is the status of a WorkloadSpread, and what follows from it.
type Report struct {
	Status appsv1beta1.WorkloadSpreadStatus
	// Stuck are the pods that find no node and are to be deleted after the status was written, sorted by name.
	Stuck []*corev1.Pod
	Notes []note.Note
	// RequeueAfter is when time alone changes the report; zero for never.
	RequeueAfter time.Duration
}

// counter computes one report.
type counter struct {
	Observation
	report Report
	// conditions of each subset, by its name.
	conditions map[string][]metav1.Condition
}

// Status computes the status from the pods, and from the records of admission in the stored status.
func Status(in Observation) Report {
	c := &counter{Observation: in, conditions: map[string][]metav1.Condition{}}
	c.Members = slices.Clone(in.Members)
	slices.SortFunc(c.Members, func(a, b Member) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	c.decideConditions()
	members := map[string][]Member{}
	for version := range in.Spread.Status.VersionedSubsetStatuses {
		members[version] = nil
	}
	for _, m := range c.Members {
		members[m.Version] = append(members[m.Version], m)
	}
	totals := make([]total, len(in.Spread.Spec.Subsets))
	lists := map[string][]Entry{}
	for _, version := range slices.Sorted(maps.Keys(members)) {
		if entries, live := c.list(version, members[version], totals); live {
			lists[version] = entries
		}
	}
	status := &c.report.Status
	status.ObservedGeneration = in.Spread.Generation
	if len(lists) > 0 {
		status.VersionedSubsetStatuses = lists
	}
	for i := range in.Spread.Spec.Subsets {
		t, name := totals[i], in.Spread.Spec.Subsets[i].Name
		status.SubsetStatuses = append(status.SubsetStatuses, Entry{
			Name: name, Replicas: int32(t.active), MissingReplicas: Missing(in.Limits[i], t.active, t.deleting, t.creating),
			Conditions: c.conditions[name],
		})
	}
	return c.report
}

func (c *counter) requeue(after time.Duration) {
	if after > 0 && (c.report.RequeueAfter == 0 || after < c.report.RequeueAfter) {
		c.report.RequeueAfter = after
	}
}

func (c *counter) note(level note.Level, code, object, text string) {
	c.report.Notes = append(c.report.Notes, note.Note{Level: level, Code: code, Object: object, Text: text})
}

// total is what all versions of a subset have.
type total struct{ active, deleting, creating int }

// list computes the entries of one version. It reports whether there is anything to keep.
func (c *counter) list(version string, members []Member, totals []total) ([]Entry, bool) {
	old := byName(c.Spread.Status.VersionedSubsetStatuses[version])
	entries := make([]Entry, len(c.Spread.Spec.Subsets))
	seen := map[string]bool{}
	for _, m := range members {
		seen[m.Pod.Name], seen[IDOf(m.Pod)] = true, true // in any subset: the pod is created
	}
	live := false
	for i := range c.Spread.Spec.Subsets {
		name := c.Spread.Spec.Subsets[i].Name
		e := &entries[i]
		e.Name, e.Conditions = name, c.conditions[name]
		was := old[name]
		if was == nil {
			was = &Entry{}
		}
		pods := map[string]*corev1.Pod{}
		for _, m := range members {
			if m.Subset == name && Active(m.Pod) {
				pods[m.Pod.Name] = m.Pod
			}
		}
		e.CreatingPods = c.creating(was.CreatingPods, seen)
		e.DeletingPods = c.deleting(was.DeletingPods, pods)
		t := total{len(pods), len(e.DeletingPods), len(e.CreatingPods)}
		e.Replicas = int32(t.active)
		e.MissingReplicas = Missing(c.Limits[i], t.active, t.deleting, t.creating)
		totals[i].active += t.active
		totals[i].deleting += t.deleting
		totals[i].creating += t.creating
		live = live || t != total{}
	}
	return entries, live
}

// creating returns the records of admitted pods that are not observed yet.
func (c *counter) creating(was map[string]metav1.Time, seen map[string]bool) map[string]metav1.Time {
	return c.records(was, CreatingTimeout, func(id string) bool { return !seen[id] }, func(id string) {
		c.note(note.Waiting, NoteNotCreated, id,
			fmt.Sprintf("Pod %s was admitted and not created within %s, and its place is free again", id, CreatingTimeout))
	})
}

// deleting returns the records of pods that are active although their deletion was admitted. A pod that was created
// since is another one.
func (c *counter) deleting(was map[string]metav1.Time, active map[string]*corev1.Pod) map[string]metav1.Time {
	remains := func(name string) bool {
		pod, since := active[name], was[name]
		return pod != nil && pod.CreationTimestamp.Before(&since)
	}
	return c.records(was, DeletingTimeout, remains, func(name string) {
		c.note(note.Waiting, NoteNotDeleted, name,
			fmt.Sprintf("Pod %s was not deleted within %s of the admission of its deletion, and keeps its place",
				name, DeletingTimeout))
	})
}

// records returns the records that hold, and reports those whose time has passed. A record of the future, beyond what
// clocks differ, has passed.
func (c *counter) records(
	was map[string]metav1.Time, timeout time.Duration, holds func(string) bool, passed func(string),
) map[string]metav1.Time {
	var kept map[string]metav1.Time
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if !holds(id) {
			continue
		}
		left := was[id].Add(timeout).Sub(c.Now)
		if left <= 0 || left > 2*timeout {
			passed(id)
			continue
		}
		if kept == nil {
			kept = map[string]metav1.Time{}
		}
		kept[id] = was[id]
		c.requeue(left)
	}
	return kept
}
