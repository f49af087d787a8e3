package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// maxSets bounds the sets of a pod. The annotations of a pod have room for the records of some 700 sets, and no pod
// runs as many as 256 sidecars. The annotation is that of the owner of the pod, and each name costs an entry of an
// index.
const maxSets = 256

// Sets returns the names of the sets that a pod records, sorted, for an index of pods by them. Only the first 256
// entries of a record count, and of these the names that a set can have.
func Sets(pod *corev1.Pod) []string {
	var names []string
	entries := 0
	for name := range strings.SplitSeq(pod.Annotations[kruise.SidecarSetInjectedListKey], ",") {
		if name == "" {
			continue
		}
		if entries++; entries > maxSets {
			break
		}
		if len(validation.IsDNS1123Subdomain(name)) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// member is a pod that has the set.
type member struct {
	pod *corev1.Pod
	// hash and revision of the set, as the pod records them.
	hash, revision string
	// unreadable is the reason why the pod cannot be updated.
	unreadable error
	// last is the status of the containers before the last update by the set; nil if there was none. badState reports that
	// the record cannot be read.
	last     map[string]kruise.InPlaceUpdateContainerStatus
	badState bool
	// working maps each hot container of the set to the working container in the pod.
	working map[string]string

	updated, consistent, ready bool
	// reset reports that the plan ends a hot upgrade of the pod.
	reset bool
}

// member returns a pod that records the set; nil if it lacks a container of the set.
func (p *planner) member(pod *corev1.Pod) *member {
	set, m := p.in.Set.Name, &member{pod: pod}
	for _, s := range p.sidecars {
		if s.hot && m.working == nil {
			m.working = workingOf(pod)
		}
		if !m.has(s) {
			return nil
		}
	}
	m.hash, m.revision, m.unreadable = injectedOf(pod, kruise.SidecarSetHashKey, set)
	var err error
	m.last, err = lastOf(pod, set)
	m.badState = err != nil
	m.updated = m.hash == p.hash
	m.consistent = m.isConsistent(func(name string) bool { return p.names[name] })
	m.ready = p.isReady(m)
	return m
}

// has reports whether the pod has the containers that a container of the set becomes.
func (m *member) has(s container) bool {
	if !s.hot {
		return indexOf(m.pod, s.name) >= 0
	}
	_, known := m.working[s.name]
	return known && indexOf(m.pod, s.first) >= 0 && indexOf(m.pod, s.second) >= 0
}

// isReady reports whether the pod is ready, and no hot upgrade is unfinished.
func (p *planner) isReady(m *member) bool {
	return runs(m.pod) && m.pod.DeletionTimestamp == nil && !slices.ContainsFunc(p.sidecars, m.isSwitching)
}

// runs reports whether the pod is running and ready.
func runs(pod *corev1.Pod) bool {
	ready := lifecycle.ConditionOf(pod, corev1.PodReady)
	return pod.Status.Phase == corev1.PodRunning && ready != nil && ready.Status == corev1.ConditionTrue
}

func indexOf(pod *corev1.Pod, name string) int {
	return slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
}

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == name {
			return s
		}
	}
	return nil
}

// workingOf returns the working container of each hot one.
func workingOf(pod *corev1.Pod) map[string]string {
	working := map[string]string{}
	if json.Unmarshal([]byte(pod.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey]), &working) != nil {
		return map[string]string{}
	}
	return working
}

// injectedOf returns the record of one set. A record of an old release is just the hash.
func injectedOf(pod *corev1.Pod, key, set string) (hash, revision string, err error) {
	data, err := entryOf(pod.Annotations[key], set)
	if err != nil || data == nil {
		return "", "", err
	}
	if data[0] != '{' && json.Unmarshal(data, &hash) == nil {
		return hash, "", nil
	}
	var entry struct { // of kruise.SidecarSetInjected: decoding the other fields costs time in a large set
		Hash               string `json:"hash"`
		ControllerRevision string `json:"controllerRevision"`
	}
	if err := json.Unmarshal(data, &entry); err != nil {
		return "", "", fmt.Errorf("read annotation %s: entry %s: %w", key, set, err)
	}
	return entry.Hash, entry.ControllerRevision, nil
}

// lastOf returns the status of the containers before the last update by a set; nil if there was none.
func lastOf(pod *corev1.Pod, set string) (map[string]kruise.InPlaceUpdateContainerStatus, error) {
	data, err := entryOf(pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey], set)
	if err != nil || data == nil || data[0] == 'n' {
		return nil, err
	}
	var state struct { // of kruise.InPlaceUpdateState
		LastContainerStatuses map[string]kruise.InPlaceUpdateContainerStatus `json:"lastContainerStatuses"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return nil, fmt.Errorf("entry %s: %w", set, err)
	}
	if state.LastContainerStatuses == nil {
		return map[string]kruise.InPlaceUpdateContainerStatus{}, nil
	}
	return state.LastContainerStatuses, nil
}

// entryOf returns the entry of a set in an annotation that is an object by the names of sets; nil if there is none.
func entryOf(text, set string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read annotation: %w", err)
	}
	return all[set], nil
}

// Switching reports whether a hot upgrade by the set is unfinished in a pod, so that both containers work.
func Switching(set *appsv1beta1.SidecarSet, pod *corev1.Pod) bool {
	m := &member{pod: pod, working: workingOf(pod)}
	return slices.ContainsFunc(containersOf(set), func(s container) bool { return s.hot && m.has(s) && m.isSwitching(s) })
}

// Matters reports whether a plan may differ after a change of a pod.
func Matters(before, after *corev1.Pod) bool {
	if before.ResourceVersion == after.ResourceVersion {
		return false
	}
	same := apiequality.Semantic.DeepEqual
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase || before.Generation != after.Generation ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		!slices.EqualFunc(before.Spec.Containers, after.Spec.Containers, sameImage) ||
		!same(before.Status.Conditions, after.Status.Conditions) ||
		!same(before.Status.ContainerStatuses, after.Status.ContainerStatuses)
}

func sameImage(a, b corev1.Container) bool { return a.Name == b.Name && a.Image == b.Image }
