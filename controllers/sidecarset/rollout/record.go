package rollout

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

// update returns the change that brings a pod to the set as it is.
func (p *planner) update(m *member) (*Change, error) {
	d := p.draft(m)
	for _, s := range p.sidecars {
		if s.hot {
			d.upgrade(m, s)
			continue
		}
		d.image(indexOf(m.pod, s.name), s.image)
	}
	if err := d.recordHash(); err != nil {
		return nil, err
	}
	if err := d.recordState(m, true); err != nil {
		return nil, err
	}
	metadata, err := sidecar.PatchAnnotations(p.in.Set, m.pod.Annotations)
	if err != nil {
		return nil, err
	}
	for key, value := range metadata {
		if _, ours := d.annotations[key]; !ours {
			d.annotate(key, value)
		}
	}
	return d.change(ActionUpdate), nil
}

// work records which of the two containers of a hot one works.
func (d *draft) work(s container, name string) {
	const key = kruise.SidecarSetWorkingHotUpgradeContainerKey
	working := map[string]string{}
	text, changed := d.annotations[key]
	if !changed {
		text = d.pod.Annotations[key]
	}
	// One that could not be read has no entry for s, and then the pod is not a member.
	if json.Unmarshal([]byte(text), &working) == nil && working != nil && working[s.name] != name {
		working[s.name] = name
		data, _ := json.Marshal(working) //nolint:errchkjson // strings
		d.annotate(key, string(data))
	}
}

// recordHash records that the pod has the set as it is.
func (d *draft) recordHash() error {
	entries, err := sidecar.ReadInjected(d.pod.Annotations[kruise.SidecarSetHashKey])
	if err != nil {
		return fmt.Errorf("read annotation %s: %w", kruise.SidecarSetHashKey, err)
	}
	entries[d.in.Set.Name] = kruise.SidecarSetInjected{
		UpdateTimestamp: metav1.NewTime(d.in.Now), Hash: d.hash, SidecarSetName: d.in.Set.Name,
		SidecarList: sidecar.Names(d.in.Set), ControllerRevision: d.in.Revision,
	}
	data, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("encode annotation %s: %w", kruise.SidecarSetHashKey, err)
	}
	d.annotate(kruise.SidecarSetHashKey, string(data))
	return nil
}

// recordState records what ran in the containers whose images change, so that their restart can be observed. An update
// begins a new record; the end of a hot upgrade belongs to the update before. An annotation that cannot be read is
// replaced.
func (d *draft) recordState(m *member, begins bool) error {
	const key = kruise.SidecarSetInPlaceUpdateStateKey
	all := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(d.pod.Annotations[key]), &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	state := kruise.InPlaceUpdateState{}
	if json.Unmarshal(all[d.in.Set.Name], &state) != nil || state.Revision == "" {
		state = kruise.InPlaceUpdateState{Revision: m.hash, UpdateTimestamp: metav1.NewTime(d.in.Now)}
	}
	if begins {
		state.UpdateTimestamp, state.Revision = metav1.NewTime(d.in.Now), d.hash
	}
	if state.LastContainerStatuses == nil {
		state.LastContainerStatuses = map[string]kruise.InPlaceUpdateContainerStatus{}
	}
	for name := range d.images {
		var last kruise.InPlaceUpdateContainerStatus
		if now := statusOf(d.pod, name); now != nil {
			last = kruise.InPlaceUpdateContainerStatus{
				ImageID: now.ImageID, ContainerID: now.ContainerID, RestartCount: now.RestartCount,
			}
		}
		state.LastContainerStatuses[name] = last
	}
	data, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode annotation %s: %w", key, err)
	}
	all[d.in.Set.Name] = data
	if data, err = json.Marshal(all); err != nil {
		return fmt.Errorf("encode annotation %s: %w", key, err)
	}
	d.annotate(key, string(data))
	return nil
}
