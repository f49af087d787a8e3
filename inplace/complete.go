package inplace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
)

// Completed reports whether no in-place update of a pod is under way any more; else the note explains what it waits
// for. An update whose annotation cannot be read is complete once the readiness gate is open.
func Completed(pod *corev1.Pod, p Policy) (bool, note.Note) {
	if hasGrace(pod, p.Keys) {
		return false, newNote(pod, NoteGrace, "the change is written when the grace period ends")
	}
	state, err := underWay(pod, p.Keys)
	switch {
	case err != nil:
		return false, newNote(pod, NoteUnreadable, err.Error())
	case hasMore(state):
		return false, newNote(pod, NoteBatch, "containers are left for a later batch")
	}
	waits := incomplete(pod, state, p)
	return waits.code == "", waits.of(pod)
}

// underWay returns the state of an update that may not be complete; nil where none is under way. Containers change only
// while the readiness gate of a pod is closed: an open gate shows that the update is complete, and the state is not
// decoded for each pod in each pass. Resources also change while the gate is open.
func underWay(pod *corev1.Pod, keys *kruise.Keys) (*kruise.InPlaceUpdateState, error) {
	_, text := annotation(pod, keys, (*kruise.Keys).InPlaceStateKey, kruise.InPlaceUpdateStateKeyOld)
	gate := keys.InPlaceReadyOf(pod)
	if lifecycle.HasGate(pod, gate) && statusOfCondition(pod, gate) == corev1.ConditionTrue &&
		!strings.Contains(text, `"next`) && !strings.Contains(text, `"updateResources"`) {
		return nil, nil
	}
	return StateOf(pod, keys)
}

func hasGrace(pod *corev1.Pod, keys *kruise.Keys) bool {
	_, _, has := keys.Lookup(pod.Annotations, (*kruise.Keys).InPlaceGraceKey)
	_, old := pod.Annotations[kruise.InPlaceUpdateGraceKeyOld]
	return has || old
}

// waiting is what keeps an update from being complete; zero for nothing.
type waiting struct{ code, container, text string }

func (w waiting) of(pod *corev1.Pod) note.Note {
	switch {
	case w.code == "":
		return note.Note{}
	case w.container != "":
		w.text = "container " + w.container + " " + w.text
	}
	return newNote(pod, w.code, w.text)
}

func hasMore(s *kruise.InPlaceUpdateState) bool {
	return s != nil &&
		(len(s.NextContainerImages) > 0 || len(s.NextContainerRefMetadata) > 0 || len(s.NextContainerResources) > 0)
}

// incomplete finds which of the batches written so far the node has not done yet; nothing when it has done all, or
// without a state.
func incomplete(pod *corev1.Pod, s *kruise.InPlaceUpdateState, p Policy) waiting {
	if s == nil {
		return waiting{}
	}
	if s.UpdateEnvFromMetadata {
		if w := unfed(pod); w.code != "" {
			return w
		}
	}
	if s.UpdateResources && !p.IgnoreResources {
		if w := resizes(pod, s); w.code != "" {
			return w
		}
	}
	var first waiting
	for name, last := range s.LastContainerStatuses {
		if w := unstarted(pod, s, name, last); w.code != "" && (first.code == "" || w.container < first.container) {
			first = w
		}
	}
	return first
}

// unfed returns what keeps the containers from running with the environment that labels and annotations give.
func unfed(pod *corev1.Pod) waiting {
	recorded, err := runtimeOf(pod)
	switch {
	case err != nil:
		return waiting{code: NoteUnreadable, text: err.Error()}
	case recorded == nil:
		return waiting{
			code: NoteDaemon, text: "no daemon on node " + pod.Spec.NodeName + " reports the containers' environment",
		}
	}
	if name := unlike(recorded, pod, sameEnv(pod)); name != "" {
		return waiting{code: NoteEnv, container: name, text: "runs with the environment from before"}
	}
	return waiting{}
}

// unstarted returns what keeps a container from running its new image.
func unstarted( //nolint:gocyclo // one question after the other
	pod *corev1.Pod, s *kruise.InPlaceUpdateState, name string, last kruise.InPlaceUpdateContainerStatus,
) waiting {
	now, c := statusOf(pod, name), find(pod.Spec.Containers, name)
	switch {
	case c == nil:
		return waiting{} // a container that the pod does not have never starts
	case now == nil:
		return waiting{code: NoteImage, container: name, text: "has no status yet"}
	case now.ImageID == "" && (last.ImageID != "" || now.State.Running == nil):
		// Between the old container and the new.
	case now.ImageID != last.ImageID:
		return waiting{}
	case last.Image != "" && last.Image == c.Image && now.State.Running != nil:
		return waiting{} // taken back before the node did anything
	case restarted(now, last, s, name):
		return waiting{} // the same image under another name
	case (last.ContainerID == "" || !SameImage(now.Image, last.Image)) && SameImage(now.Image, c.Image):
		// A container that is known to be the old one stops also for another name of the image that it runs.
		return waiting{}
	}
	if runsAsRecorded(pod, name, now, last) {
		return waiting{}
	}
	text := "does not run image " + c.Image + " yet"
	if cause := now.State.Waiting; cause != nil && cause.Reason != "" {
		text = strings.TrimRight(text+": "+cause.Reason+": "+cause.Message, ": ")
	}
	return waiting{code: NoteImage, container: name, text: text}
}

// runsAsRecorded reports whether, by the record of a daemon, all containers run their specs. It is not asked about a
// container that is still the one from before.
func runsAsRecorded(
	pod *corev1.Pod, name string, now *corev1.ContainerStatus, last kruise.InPlaceUpdateContainerStatus,
) bool {
	if last.ContainerID != "" && last.ContainerID == now.ContainerID || find(pod.Spec.Containers, name) == nil {
		return false
	}
	recorded, err := runtimeOf(pod)
	return err == nil && recorded != nil && unlike(recorded, pod, samePlain) == ""
}

// restarted reports whether the container is another one than before its image was written. Where only the image was
// recorded, the time of its start decides.
func restarted(
	now *corev1.ContainerStatus, last kruise.InPlaceUpdateContainerStatus, s *kruise.InPlaceUpdateState, name string,
) bool {
	if last.ContainerID != "" {
		return now.ContainerID != "" && now.ContainerID != last.ContainerID || now.RestartCount > last.RestartCount
	}
	return now.State.Running != nil && now.State.Running.StartedAt.After(written(s, name))
}

// written is when the last batch with a container was.
func written(s *kruise.InPlaceUpdateState, name string) time.Time {
	at := s.UpdateTimestamp.Time
	for _, batch := range s.ContainerBatchesRecord {
		if slices.Contains(batch.Containers, name) {
			at = batch.Timestamp.Time
		}
	}
	return at
}

// resizes returns what keeps the resources of the update's containers from being what the spec says.
func resizes(pod *corev1.Pod, s *kruise.InPlaceUpdateState) waiting {
	for _, batch := range s.ContainerBatchesRecord {
		for _, name := range batch.Containers {
			if w := unresized(pod, name); w.code != "" {
				return w
			}
		}
	}
	return waiting{}
}

// unresized returns what keeps a container from having the resources in its spec, or the pod as a whole, whose node
// reports a condition until it has them.
func unresized(pod *corev1.Pod, name string) waiting {
	if name == podLevel {
		if pod.Status.ObservedGeneration < pod.Generation ||
			statusOfCondition(pod, corev1.PodResizePending) == corev1.ConditionTrue ||
			statusOfCondition(pod, corev1.PodResizeInProgress) == corev1.ConditionTrue {
			return resizing(pod, name, "the pod has its resources from before")
		}
		return waiting{}
	}
	c, status := find(pod.Spec.Containers, name), statusOf(pod, name)
	switch {
	case c == nil || len(c.Resources.Limits) == 0 && len(c.Resources.Requests) == 0:
		return waiting{}
	case status == nil || status.Resources == nil:
		return resizing(pod, name, "has no resources in its status yet")
	case !sameAmounts(c.Resources.Limits, status.Resources.Limits) ||
		!sameAmounts(c.Resources.Requests, status.Resources.Requests):
		return resizing(pod, name, "has its resources from before")
	}
	return waiting{}
}

// sameAmounts compares cpu and memory.
func sameAmounts(want, have corev1.ResourceList) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		w, h := want[name], have[name]
		if w.Cmp(h) != 0 {
			return false
		}
	}
	return true
}

// resizing returns why the node has not changed the resources yet, where the node reports that.
func resizing(pod *corev1.Pod, container, text string) waiting {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		// An answer to an older spec is none.
		if c.Status != corev1.ConditionTrue || c.ObservedGeneration != 0 && c.ObservedGeneration < pod.Generation {
			continue
		}
		switch {
		case c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible:
			return waiting{code: NoteInfeasible, text: "the node can never give these resources: " + c.Message}
		case c.Type == corev1.PodResizePending:
			return waiting{code: NoteDeferred, text: "the node has no room for these resources for now: " + c.Message}
		case c.Type == corev1.PodResizeInProgress && c.Reason == corev1.PodReasonError:
			return waiting{code: NoteResize, container: container, text: "could not be resized yet: " + c.Message}
		}
	}
	return waiting{code: NoteResize, container: container, text: text}
}

// PlainHashes are the hashes that kubelets give a container's spec: of 1.31 and later, which take only name and
// image, and of older ones.
func PlainHashes(c *corev1.Container) (current, older uint64, err error) {
	current, err = hashOf(map[string]string{"image": c.Image, "name": c.Name})
	if err != nil {
		return 0, 0, err
	}
	older, err = hashOf(c)
	return current, older, err
}

// EnvHash is the hash of those values of a container's environment that come from labels and annotations.
func EnvHash(c *corev1.Container, labels, annotations map[string]string) (uint64, error) {
	return envHash(c, func(f feed) string {
		if f.label {
			return labels[f.key]
		}
		return annotations[f.key]
	})
}

// ProcessEnvHash is the same hash with the values that a process of the container has.
func ProcessEnvHash(c *corev1.Container, environment map[string]string) (uint64, error) {
	return envHash(c, func(f feed) string { return environment[f.env] })
}

// HasFedEnv reports whether values of a container's environment come from labels and annotations.
func HasFedEnv(c *corev1.Container) bool { return len(fedBy(c)) > 0 }

func envHash(c *corev1.Container, value func(feed) string) (uint64, error) {
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value,omitempty"`
	}
	var env []variable
	for _, f := range fedBy(c) {
		env = append(env, variable{f.env, value(f)})
	}
	slices.SortStableFunc(env, func(a, b variable) int { return cmp.Compare(a.Name, b.Name) })
	return hashOf(env)
}

func hashOf(v any) (uint64, error) {
	n, err := revision.Fingerprint(v)
	return uint64(n), err
}

// runtimeOf reads what the node daemon reports of a pod's containers; nil where no daemon has reported.
func runtimeOf(pod *corev1.Pod) (*kruise.RuntimeContainerMetaSet, error) {
	return decode[kruise.RuntimeContainerMetaSet](
		kruise.RuntimeContainerMetaKey, pod.Annotations[kruise.RuntimeContainerMetaKey])
}

// unlike is the first container that does not run what its spec says, by a hash; empty when all do. The
// containers are those that every pod waits for, sidecars of other owners included.
func unlike(
	r *kruise.RuntimeContainerMetaSet, pod *corev1.Pod, same func(*corev1.Container, kruise.RuntimeContainerHashes) bool,
) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		status := statusOf(pod, c.Name)
		at := slices.IndexFunc(r.Containers, func(m kruise.RuntimeContainerMeta) bool { return m.Name == c.Name })
		if status == nil || at < 0 {
			return c.Name
		}
		if m := &r.Containers[at]; m.ContainerID != status.ContainerID || !same(c, m.Hashes) {
			return c.Name
		}
	}
	return ""
}

func samePlain(c *corev1.Container, h kruise.RuntimeContainerHashes) bool {
	current, older, err := PlainHashes(c)
	return err == nil && (h.PlainHash == current || h.PlainHash == older)
}

// sameEnv compares with the labels and annotations that the pod has now.
func sameEnv(pod *corev1.Pod) func(*corev1.Container, kruise.RuntimeContainerHashes) bool {
	return func(c *corev1.Container, h kruise.RuntimeContainerHashes) bool {
		hash, err := EnvHash(c, pod.Labels, pod.Annotations)
		return err == nil && h.ExtractedEnvFromMetadataHash == hash
	}
}

// statusOf finds the status of a container.
func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}
