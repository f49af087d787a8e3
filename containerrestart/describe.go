package containerrestart

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
)

// ownGroup is the API group of the workloads whose pods are described.
const ownGroup = "apps.kruise.io"

// View is a pod as the daemon on its node sees it.
type View struct {
	// Pod to describe.
	Pod *corev1.Pod
	// Containers of the pod that the runtime has, in any order.
	Containers []Container
	// Env compares the hashes of environments, and restarts the containers whose hashes differ.
	Env bool
	// Environments are those of the processes of running containers, by container ID, as far as they were read. One that
	// is nil could not be read.
	Environments map[string]map[string]string
	// Stopping are the IDs of containers that are being stopped.
	Stopping []string
}

// Description is what the daemon does about a pod, in the order of the fields.
type Description struct {
	// Annotation is the value to write under RuntimeContainerMetaKey; empty when nothing is to be written.
	Annotation string
	// Read are IDs of containers whose environment is missing from the view. Where reading fails, it is for the caller to
	// try again later.
	Read []string
	// Restart are containers to stop, so that they start with their new environment.
	Restart []Kill
	// Notes say why others are not.
	Notes []note.Note
}

// Describe returns the annotation with the running containers of a pod, which an in-place update waits for. It also
// returns the containers to restart, because their environment is outdated. It restarts containers only while the pod
// is out of traffic for an in-place update, those with the highest launch priority first.
func Describe(v View) (Description, error) {
	if !described(v.Pod) {
		return Description{}, nil
	}
	d := &describer{View: v, had: metasOf(v.Pod)}
	var metas []kruise.RuntimeContainerMeta
	for i := range v.Pod.Status.ContainerStatuses {
		name := v.Pod.Status.ContainerStatuses[i].Name
		c, running := ownContainer(v.Pod, name), newest(v.Containers, name)
		if c == nil || running == nil {
			continue
		}
		meta, err := d.meta(c, running)
		if err != nil {
			return Description{}, err
		}
		metas = append(metas, meta)
	}
	if !slices.Equal(metas, d.had) {
		text, err := json.Marshal(kruise.RuntimeContainerMetaSet{Containers: metas})
		if err != nil {
			return Description{}, fmt.Errorf("encode %s: %w", kruise.RuntimeContainerMetaKey, err)
		}
		d.is.Annotation = string(text)
		if len(metas) == 0 {
			d.is.Annotation = `{"containers":[]}`
		}
	}
	if v.Env && outOfTraffic(v.Pod) {
		if err := d.restart(metas); err != nil {
			return Description{}, err
		}
	}
	return d.is, nil
}

// described reports whether a pod gets the annotation. In-place updates read it on the pods of a SidecarSet or of a
// workload of ownGroup.
func described(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) == 0 {
		return false
	}
	if _, ok := pod.Annotations[kruise.SidecarSetHashKey]; ok {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false
	}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group == ownGroup
}

// outOfTraffic reports whether a pod is out of traffic for an in-place update.
func outOfTraffic(pod *corev1.Pod) bool {
	c := lifecycle.ConditionOf(pod, kruise.InPlaceUpdateReady)
	return c != nil && c.Status == corev1.ConditionFalse
}

// metasOf returns the annotation that the pod has. An annotation that cannot be decoded counts as absent, and is
// written again.
func metasOf(pod *corev1.Pod) []kruise.RuntimeContainerMeta {
	var set kruise.RuntimeContainerMetaSet
	if err := json.Unmarshal([]byte(pod.Annotations[kruise.RuntimeContainerMetaKey]), &set); err != nil {
		return nil
	}
	return set.Containers
}

func metaOf(metas []kruise.RuntimeContainerMeta, name string) *kruise.RuntimeContainerMeta {
	if i := slices.IndexFunc(metas, func(m kruise.RuntimeContainerMeta) bool { return m.Name == name }); i >= 0 {
		return &metas[i]
	}
	return nil
}

// ownContainer finds a container of the pod that is no init container: others wait for no meta of these.
func ownContainer(pod *corev1.Pod, name string) *corev1.Container {
	if i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
		return &pod.Spec.Containers[i]
	}
	return nil
}

type describer struct {
	View
	had []kruise.RuntimeContainerMeta
	is  Description
}

func (d *describer) note(code, text string) {
	d.is.Notes = append(d.is.Notes, newNote(code, d.Pod.Name, text))
}

// meta returns the entry of one container. An entry for the same container ID stays, because its process does not
// change.
func (d *describer) meta(c *corev1.Container, running *Container) (kruise.RuntimeContainerMeta, error) {
	meta := kruise.RuntimeContainerMeta{
		Name: c.Name, ContainerID: running.ID, RestartCount: running.RestartCount,
		Hashes: kruise.RuntimeContainerHashes{PlainHash: running.Hash},
	}
	if old := metaOf(d.had, c.Name); old != nil && old.ContainerID == running.ID {
		meta = *old
	}
	if !d.Env || meta.Hashes.ExtractedEnvFromMetadataHash != 0 || running.State != StateRunning {
		return meta, nil
	}
	environment := d.Environments[running.ID]
	if environment == nil && inplace.HasFedEnv(c) {
		d.note(NoteNoEnv, "the environment of container "+c.Name+" is not known yet")
		d.is.Read = append(d.is.Read, running.ID)
		return meta, nil
	}
	hash, err := inplace.ProcessEnvHash(c, environment)
	if err != nil {
		return meta, fmt.Errorf("hash environment of container %s: %w", c.Name, err)
	}
	meta.Hashes.ExtractedEnvFromMetadataHash = hash
	return meta, nil
}

// restart chooses the containers to stop. A container waits until those of a higher launch priority, whose environment
// comes from metadata also, run with the one that they are to have and are ready.
func (d *describer) restart(metas []kruise.RuntimeContainerMeta) error {
	var stale []*corev1.Container
	first := math.MinInt // the highest launch priority of those that are not up
	for i := range d.Pod.Spec.Containers {
		c := &d.Pod.Spec.Containers[i]
		if !inplace.HasFedEnv(c) {
			continue
		}
		is, up, err := d.compare(c, metas)
		if err != nil {
			return err
		}
		if is {
			stale = append(stale, c)
		}
		if p, ok := inplace.LaunchPriority(c, nil); ok && !up {
			first = max(first, p)
		}
	}
	for _, c := range stale {
		if name := ambiguous(c); name != "" {
			d.note(NoteNoEnv, "container "+c.Name+" has "+name+" twice: what it is to be cannot be compared")
			continue
		}
		if p, ok := inplace.LaunchPriority(c, nil); ok && p < first {
			d.note(NoteLaunchOrder, "container "+c.Name+" waits for those of a higher launch priority")
			continue
		}
		d.is.Restart = append(d.is.Restart, d.kill(c, newest(d.Containers, c.Name)))
	}
	return nil
}

// compare says whether a container runs with another environment than it is to have, and whether it is up with that
// one.
func (d *describer) compare(c *corev1.Container, metas []kruise.RuntimeContainerMeta) (stale, up bool, err error) {
	want, err := inplace.EnvHash(c, d.Pod.Labels, d.Pod.Annotations)
	if err != nil {
		return false, false, fmt.Errorf("hash environment of container %s: %w", c.Name, err)
	}
	running, meta := newest(d.Containers, c.Name), metaOf(metas, c.Name)
	if running == nil || meta == nil || running.State != StateRunning || slices.Contains(d.Stopping, running.ID) {
		return false, false, nil
	}
	have, status := meta.Hashes.ExtractedEnvFromMetadataHash, statusOf(d.Pod, c.Name)
	up = have == want && status != nil && status.Ready && status.ContainerID == running.ID
	return have != 0 && have != want, up, nil
}

// ambiguous is a variable that comes from metadata and stands in a container twice, so that no new start makes it what
// its first entry says; empty for none.
func ambiguous(c *corev1.Container) string {
	for i := range c.Env {
		same := slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return e.Name != c.Env[i].Name })
		if len(same) > 1 && inplace.HasFedEnv(&corev1.Container{Env: same}) {
			return c.Env[i].Name
		}
	}
	return ""
}

// kill is how a container is stopped, by what the kubelet noted on it when it started.
func (d *describer) kill(c *corev1.Container, running *Container) Kill {
	grace := int64(leastGrace)
	switch {
	case running.DeletionGrace != nil:
		grace = *running.DeletionGrace
	case running.TerminationGrace != nil:
		grace = *running.TerminationGrace
	}
	k := Kill{
		Container: c.Name, ContainerID: running.ID, Grace: secondsOf(grace),
		Text: "Stopping container " + c.Name + " by container meta restarter",
	}
	if k.Grace > 0 {
		k.Hook = hookOf(running.PreStop, running.Ports, d.Pod.Status.PodIP)
	}
	return k
}
