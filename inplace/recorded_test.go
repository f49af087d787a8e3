package inplace_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
)

// recorded gives the pods that a running reference managed: before, while and after it updated some of them.
func recorded(t *testing.T, step string) map[string]*corev1.Pod {
	t.Helper()
	list := corev1.PodList{}
	read(t, step+"/pods.yaml", &list)
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("../test/compat/testdata/recorded/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestRecordedStates reads every state and writes the same bytes, and agrees with the reference on what is complete.
func TestRecordedStates(t *testing.T) {
	n := 0
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		for name, pod := range recorded(t, step) {
			text, has := pod.Annotations[kruise.InPlaceUpdateStateKey]
			if !has || pod.DeletionTimestamp != nil {
				continue
			}
			n++
			s, err := inplace.StateOf(pod, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := encoded(t, s); got != text {
				t.Errorf("%s/%s:\nrecorded %s\nours     %s", step, name, text, got)
			}
			done, note := inplace.Completed(pod, inplace.Policy{})
			a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
			if ready := condition(pod, kruise.InPlaceUpdateReady).Status == corev1.ConditionTrue; done != ready || err != nil ||
				(a.Verdict == inplace.Complete) != ready {
				t.Errorf("%s/%s: the reference made it ready: %v; we: %v, %v, %v, %v", step, name, ready, done, note, a, err)
			}
		}
	}
	if n < 15 {
		t.Errorf("want all recorded states, got %d", n)
	}
}

// TestRecordedHashes computes what a real daemon reported of real containers.
func TestRecordedHashes(t *testing.T) {
	n := 0
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		for name, pod := range recorded(t, step) {
			var set kruise.RuntimeContainerMetaSet
			text, has := pod.Annotations[kruise.RuntimeContainerMetaKey]
			if !has {
				continue
			}
			if err := json.Unmarshal([]byte(text), &set); err != nil {
				t.Fatal(err)
			}
			for _, meta := range set.Containers {
				i := indexOf(pod.Spec.Containers, meta.Name)
				current, _, err := inplace.PlainHashes(&pod.Spec.Containers[i])
				if err != nil || current != meta.Hashes.PlainHash {
					t.Errorf("%s/%s/%s: plain hash: recorded %d, ours %d, %v",
						step, name, meta.Name, meta.Hashes.PlainHash, current, err)
				}
				env, err := inplace.EnvHash(&pod.Spec.Containers[i], pod.Labels, pod.Annotations)
				if recorded := meta.Hashes.ExtractedEnvFromMetadataHash; err != nil || recorded != 0 && env != recorded {
					t.Errorf("%s/%s/%s: hash of variables: recorded %d, ours %d, %v", step, name, meta.Name, recorded, env, err)
				}
				n++
			}
		}
	}
	if n < 60 {
		t.Errorf("want all recorded hashes, got %d", n)
	}
}

func indexOf(containers []corev1.Container, name string) int {
	for i := range containers {
		if containers[i].Name == name {
			return i
		}
	}
	return -1
}

// TestRecordedUpdates updates the recorded pods again, from the recorded revisions, and compares with what the
// reference made of them.
func TestRecordedUpdates(t *testing.T) {
	before, after := recorded(t, "1-created"), recorded(t, "3-updated")
	templates := recordedTemplates(t)
	n := 0
	for name, updated := range after {
		theirs := stateOf(t, updated)
		if theirs == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			n++
			pod := before[name]
			from, to := templates(pod), templates(updated)
			c, err := inplace.Diff(from, to, inplace.Policy{Env: inplace.EnvRestart})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // not ready, change
				a, err := inplace.Next(inplace.Update{Pod: pod, Change: c, Revision: updated.Labels[kruise.PodRevisionLabelKey]},
					inplace.Policy{}, noon())
				if err != nil {
					t.Fatal(err)
				}
				pod = applied(t, pod, a)
			}
			ours := stateOf(t, pod)
			if ours.UpdateImages != theirs.UpdateImages || ours.UpdateEnvFromMetadata != theirs.UpdateEnvFromMetadata ||
				ours.UpdateResources != theirs.UpdateResources || !revision.Match(ours.Revision, theirs.Revision) ||
				len(ours.LastContainerStatuses) != len(theirs.LastContainerStatuses) {
				t.Errorf("recorded %+v\nours     %+v", theirs, ours)
			}
			for name, status := range theirs.LastContainerStatuses {
				if ours.LastContainerStatuses[name].ImageID != status.ImageID {
					t.Errorf("%s: recorded %v, ours %v", name, status, ours.LastContainerStatuses[name])
				}
			}
			if d := cmp.Diff(batches(theirs), batches(ours)); d != "" {
				t.Errorf("batches (-recorded +ours):\n%s", d)
			}
			if d := cmp.Diff(updated.Spec, pod.Spec); d != "" {
				t.Errorf("spec (-recorded +ours):\n%s", d)
			}
			if updated.Annotations["conf"] != pod.Annotations["conf"] {
				t.Errorf("annotations: recorded %v, ours %v", updated.Annotations, pod.Annotations)
			}
			if a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon()); err != nil ||
				a.Verdict != inplace.Wait {
				t.Errorf("before the node has seen it: want to wait, got %v, %v", a, err)
			}
			mark := *condition(pod, kruise.InPlaceUpdateReady)
			pod.Status = *updated.Status.DeepCopy()
			*condition(pod, kruise.InPlaceUpdateReady) = mark
			pod.Annotations[kruise.RuntimeContainerMetaKey] = updated.Annotations[kruise.RuntimeContainerMetaKey]
			a, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon())
			if err != nil {
				t.Fatal(err)
			}
			if got := condition(applied(t, pod, a), kruise.InPlaceUpdateReady).Status; got != corev1.ConditionTrue {
				t.Errorf("when the node has done it: want it ready, got %s", got)
			}
			// And theirs, which records less, by us.
			pod.Annotations[kruise.InPlaceUpdateStateKey] = updated.Annotations[kruise.InPlaceUpdateStateKey]
			if done, n := inplace.Completed(pod, inplace.Policy{}); !done {
				t.Errorf("want their state complete, got %v", n)
			}
			pod.Status.ContainerStatuses = before[name].Status.ContainerStatuses
			pod.Annotations[kruise.RuntimeContainerMetaKey] = before[name].Annotations[kruise.RuntimeContainerMetaKey]
			if done, _ := inplace.Completed(pod, inplace.Policy{}); done {
				t.Error("want their state not complete before the node has seen it")
			}
		})
	}
	if n < 8 {
		t.Errorf("want all recorded updates, got %d", n)
	}
}

// recordedTemplates finds the template of a pod's revision.
func recordedTemplates(t *testing.T) func(*corev1.Pod) *corev1.PodTemplateSpec {
	t.Helper()
	list := appsv1.ControllerRevisionList{}
	read(t, "3-updated/controllerrevisions.yaml", &list)
	return func(pod *corev1.Pod) *corev1.PodTemplateSpec {
		t.Helper()
		for i := range list.Items {
			r := &list.Items[i]
			if r.Namespace != pod.Namespace || r.OwnerReferences[0].UID != pod.OwnerReferences[0].UID ||
				!revision.Match(r.Name, pod.Labels[kruise.PodRevisionLabelKey]) {
				continue
			}
			template, err := revision.Decode(r.Data.Raw)
			if err != nil {
				t.Fatal(err)
			}
			return template
		}
		t.Fatalf("%s has no recorded revision %s", pod.Name, pod.Labels[kruise.PodRevisionLabelKey])
		return nil
	}
}
