package podstate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// settle is how long replicas of admission may take to see a released record. Pods that were created in this time are
	// stuck, too.
	settle = 5 * time.Second
	// mostNames of pods in the message of the condition.
	mostNames = 10
)

// found has the values of labels on nodes.
type found struct {
	nodes []*corev1.Node
	// combinations are the values that nodes have together, by their keys.
	combinations map[string]map[string]bool
}

const separator = "\x00"

// any reports whether a node has all of the labels.
func (f *found) any(keys []string, labels map[string]string) bool {
	id := strings.Join(keys, separator)
	if f.combinations[id] == nil {
		f.combinations[id] = map[string]bool{}
		for _, node := range f.nodes {
			if values, is := joined(keys, node.Labels); is {
				f.combinations[id][values] = true
			}
		}
	}
	values, _ := joined(keys, labels)
	return f.combinations[id][values]
}

// joined returns the values of all keys; false where one is missing.
func joined(keys []string, labels map[string]string) (string, bool) {
	var b strings.Builder
	for _, k := range keys {
		v, is := labels[k]
		if !is {
			return "", false
		}
		b.WriteString(v + separator)
	}
	return b.String(), true
}

// available reports whether a node has the labels.
func (p *planner) available(node string, keys []string, labels map[string]string) bool {
	if n := p.Node(node); n != nil && apiContains(n.Labels, keys, labels) {
		return true
	}
	if p.found == nil {
		p.found = &found{nodes: p.Nodes(), combinations: map[string]map[string]bool{}}
	}
	return p.found.any(keys, labels)
}

func apiContains(has map[string]string, keys []string, labels map[string]string) bool {
	for _, k := range keys {
		if v, is := has[k]; !is || v != labels[k] {
			return false
		}
	}
	return true
}

// requires returns the keys of required labels that a record has, in the order of the spec.
func (p *planner) requires(r record) []string {
	return slices.DeleteFunc(slices.Clone(required(p.State)), func(key string) bool {
		_, is := r.NodeTopologyLabels[key]
		return !is
	})
}

// findMissing notes the records whose required labels no node has, and releases those that have been missing for long
// enough.
func (p *planner) findMissing() {
	after, releases, err := ReleaseAfter(p.State)
	if err != nil {
		p.note(note.Blocked, NoteBadRelease, "",
			fmt.Sprintf("annotation %s: %v", v1beta1.AnnotationReleaseMissingTopologyAfter, err))
	}
	for _, name := range slices.Sorted(maps.Keys(p.next)) {
		r := p.next[name]
		keys := p.requires(r)
		if len(keys) == 0 || p.available(r.NodeName, keys, r.NodeTopologyLabels) {
			if r.MissingSince != nil {
				r.MissingSince = nil
				p.next[name] = r
			}
			continue
		}
		if r.MissingSince == nil {
			r.MissingSince = &metav1.Time{Time: p.Now.Truncate(time.Second)}
		}
		if left := r.MissingSince.Add(after).Sub(p.Now); releases && left <= 0 {
			r = p.release(r, keys)
			p.released = append(p.released, name)
			p.note(note.Info, NoteReleased, name, "the pod no longer requires labels that no node has")
			p.after(time.Second) // for the pods that are stuck
		} else {
			p.missing = append(p.missing, name)
			p.note(note.Blocked, NoteMissing, name, fmt.Sprintf("no node has the required labels of node %s", r.NodeName))
			if releases {
				p.after(left)
			}
		}
		p.next[name] = r
	}
}

func (p *planner) after(d time.Duration) {
	if p.pass.RequeueAfter == 0 || d < p.pass.RequeueAfter {
		p.pass.RequeueAfter = max(d, time.Millisecond)
	}
}

// release returns a record without the required labels that no node has together with those before them.
func (p *planner) release(r record, keys []string) record {
	var kept []string
	labels := maps.Clone(r.NodeTopologyLabels)
	for _, key := range keys {
		if more := append(slices.Clip(kept), key); p.available("", more, r.NodeTopologyLabels) {
			kept = more
			continue
		}
		delete(labels, key)
	}
	if len(labels) == 0 {
		labels = nil
	}
	r.NodeTopologyLabels, r.MissingSince, r.ReleasedAt = labels, nil, &metav1.Time{Time: p.Now.Truncate(time.Second)}
	return r
}

// findStuck finds the pods that wait for labels that the stored records have released. Records that this pass releases
// have to be written first.
func (p *planner) findStuck(pods []*corev1.Pod) {
	for _, pod := range pods {
		r, is := p.State.Status.PodStates[pod.Name]
		if !is || r.ReleasedAt == nil || !active(pod) || pod.Spec.NodeName != "" ||
			pod.Annotations[kruise.InjectedPersistentPodStateKey] != p.State.Name ||
			pod.CreationTimestamp.After(r.ReleasedAt.Add(settle)) {
			continue
		}
		var keys []string
		for _, key := range required(p.State) {
			_, selects := pod.Spec.NodeSelector[key]
			if _, kept := r.NodeTopologyLabels[key]; selects && !kept {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 && !p.available("", keys, pod.Spec.NodeSelector) {
			p.pass.Stuck = append(p.pass.Stuck, pod)
		}
	}
}

// conditions returns those of the status. There is none before the first missing node.
func (p *planner) conditions() []metav1.Condition {
	all := slices.Clone(p.State.Status.Conditions)
	c := metav1.Condition{
		Type:               v1beta1.PersistentPodStateTopologyAvailable,
		Status:             metav1.ConditionTrue,
		Reason:             v1beta1.PersistentPodStateNodesFound,
		Message:            "Nodes have the required labels of all pods",
		ObservedGeneration: p.State.Generation,
		LastTransitionTime: metav1.Time{Time: p.Now.Truncate(time.Second)},
	}
	before := apimeta.FindStatusCondition(all, c.Type)
	switch {
	case len(p.missing) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, v1beta1.PersistentPodStateNodesMissing
		c.Message = "No node has the required labels of " + listed(p.missing, p.next)
	case before == nil && len(p.released) == 0:
		return all
	}
	if before != nil && before.Status == c.Status && before.Message == c.Message && before.Reason == c.Reason {
		return all
	}
	apimeta.SetStatusCondition(&all, c)
	return all
}

// listed names pods with the nodes where they were.
func listed(names []string, records map[string]record) string {
	texts := make([]string, 0, mostNames)
	for _, name := range names[:min(len(names), mostNames)] {
		texts = append(texts, fmt.Sprintf("%s (%s)", name, records[name].NodeName))
	}
	text := strings.Join(texts, ", ")
	if more := len(names) - mostNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func compareNotes(a, b note.Note) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Code, b.Code))
}
