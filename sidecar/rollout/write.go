package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Write is one change of one pod.
type Write struct {
	// Pod as it was observed.
	Pod *corev1.Pod
	// Images are the new ones by the name of the container in the pod. There may be none: what the pod runs is right, and it
	// only does not say so.
	Images map[string]string
	// Annotations that change, with their new values.
	Annotations map[string]string
	// Mark is what the condition of the pod has to say after the write; nil if it says so already.
	Mark *Mark
}

// Apply gives the pod as the write makes it.
func (w Write) Apply() *corev1.Pod {
	pod := w.Pod.DeepCopy()
	for i := range pod.Spec.Containers {
		if image, ok := w.Images[pod.Spec.Containers[i].Name]; ok {
			pod.Spec.Containers[i].Image = image
		}
	}
	if pod.Annotations == nil && len(w.Annotations) > 0 {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Annotations, w.Annotations)
	return pod
}

// Patch is the write as a JSON patch. The API server refuses it, as an invalid request, when the pod is another one of the same
// name, or when somebody else has changed one of the annotations or containers meanwhile: the values of annotations tell of
// all sets. What kubelets write is no hindrance.
func (w Write) Patch() ([]byte, error) {
	type step struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	steps := []step{{"test", "/metadata/uid", w.Pod.UID}}
	for _, key := range slices.Sorted(maps.Keys(w.Annotations)) {
		path := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		var was any // null is what is not there
		if value, ok := w.Pod.Annotations[key]; ok {
			was = value
		}
		steps = append(steps, step{"test", path, was}, step{"add", path, w.Annotations[key]})
	}
	for i := range w.Pod.Spec.Containers {
		c := &w.Pod.Spec.Containers[i]
		if image, ok := w.Images[c.Name]; ok {
			path := fmt.Sprintf("/spec/containers/%d/", i)
			steps = append(steps, step{"test", path + "name", c.Name}, step{"test", path + "image", c.Image}, step{"replace", path + "image", image})
		}
	}
	data, err := json.Marshal(steps)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}

// writing is a write on its way.
type writing struct {
	Write
	set *appsv1beta1.SidecarSet
	// hash of the set.
	hash string
	now  time.Time
	gone func(string) bool
}

func (p *planner) write(m *member) *writing {
	return &writing{
		Write: Write{Pod: m.pod, Images: map[string]string{}, Annotations: map[string]string{}},
		set:   p.in.Set, hash: p.hash, now: p.in.Now, gone: p.in.Gone,
	}
}

// update is all that brings a pod to the set as it is.
func (p *planner) update(m *member) (*writing, error) {
	w := p.write(m)
	for _, s := range p.sidecars {
		if s.hot {
			w.upgrade(m, s)
			continue
		}
		w.image(indexOf(m.pod, s.name), s.image)
	}
	if err := w.recordHash(p.in.Revision); err != nil {
		return nil, err
	}
	if err := w.recordState(m, true); err != nil {
		return nil, err
	}
	metadata, err := sidecar.PatchAnnotations(p.in.Set, m.pod.Annotations)
	if err != nil {
		return nil, err
	}
	for key, value := range metadata {
		if _, ours := w.Annotations[key]; !ours {
			w.annotate(key, value)
		}
	}
	w.Mark = p.markOf(m, true)
	return w, nil
}

// annotate changes an annotation, if it has another value.
func (w *writing) annotate(key, value string) {
	if was, had := w.Pod.Annotations[key]; !had || was != value {
		w.Annotations[key] = value
	}
}

// image changes the image of a container, if it has another one.
func (w *writing) image(at int, image string) {
	if c := &w.Pod.Spec.Containers[at]; c.Image != image {
		w.Images[c.Name] = image
	}
}

// reset gives a container the empty image, where there is one to give.
func (w *writing) reset(at int, empty string) {
	if empty != "" {
		w.image(at, empty)
	}
}

// work puts one of the two containers of a hot one to work.
func (w *writing) work(s container, name string) {
	const key = pub.SidecarSetWorkingHotUpgradeContainerKey
	working := map[string]string{}
	text, changed := w.Annotations[key]
	if !changed {
		text = w.Pod.Annotations[key]
	}
	// One that could not be read has no entry for s, and then the pod is not a member.
	if json.Unmarshal([]byte(text), &working) == nil && working != nil && working[s.name] != name {
		working[s.name] = name
		if data, err := json.Marshal(working); err == nil {
			w.annotate(key, string(data))
		}
	}
}

// recordHash tells that the pod has the set as it is.
func (w *writing) recordHash(revision string) error {
	entries, err := sidecar.ReadInjected(w.Pod.Annotations[pub.SidecarSetHashKey])
	if err != nil {
		return fmt.Errorf("read annotation %s: %w", pub.SidecarSetHashKey, err)
	}
	entries[w.set.Name] = pub.SidecarSetInjected{
		UpdateTimestamp: metav1.NewTime(w.now), Hash: w.hash, SidecarSetName: w.set.Name,
		SidecarList: sidecar.Names(w.set), ControllerRevision: revision,
	}
	data, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("encode annotation %s: %w", pub.SidecarSetHashKey, err)
	}
	w.annotate(pub.SidecarSetHashKey, string(data))
	return nil
}

// recordState tells what ran in the containers whose images change, so that it can be seen when they have restarted. An
// update begins anew; the end of a hot upgrade is still of the update before. An annotation that cannot be read is no use to
// anybody and is replaced.
func (w *writing) recordState(m *member, begins bool) error {
	const key = pub.SidecarSetInPlaceUpdateStateKey
	all := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(w.Pod.Annotations[key]), &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	state := pub.InPlaceUpdateState{}
	if json.Unmarshal(all[w.set.Name], &state) != nil || state.Revision == "" {
		state = pub.InPlaceUpdateState{Revision: m.hash, UpdateTimestamp: metav1.NewTime(w.now)}
	}
	if begins {
		state.UpdateTimestamp, state.Revision = metav1.NewTime(w.now), w.hash
	}
	if state.LastContainerStatuses == nil {
		state.LastContainerStatuses = map[string]pub.InPlaceUpdateContainerStatus{}
	}
	for name := range w.Images {
		var last pub.InPlaceUpdateContainerStatus
		if now := statusOf(w.Pod, name); now != nil {
			last = pub.InPlaceUpdateContainerStatus{ImageID: now.ImageID, ContainerID: now.ContainerID, RestartCount: now.RestartCount}
		}
		state.LastContainerStatuses[name] = last
	}
	data, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode annotation %s: %w", key, err)
	}
	all[w.set.Name] = data
	for name := range all {
		if name != w.set.Name && w.gone != nil && w.gone(name) {
			delete(all, name)
		}
	}
	if data, err = json.Marshal(all); err != nil {
		return fmt.Errorf("encode annotation %s: %w", key, err)
	}
	w.annotate(key, string(data))
	return nil
}
