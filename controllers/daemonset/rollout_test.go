package daemonset_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/requests"
)

// Each node gets a pod with the labels, the pin and the tolerations of a DaemonSet. A deleted pod comes back, and a set
// that is done costs nothing.
func TestCreate(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create()
	m.becomes(set, "n1:1 n2:1 n3:1")
	m.eventually(set, settled(3))
	pod := m.on("n2")
	ref := metav1.GetControllerOf(pod)
	if ref == nil || ref.APIVersion != "apps.kruise.io/v1beta1" || ref.Kind != "DaemonSet" ||
		len(pod.Spec.Tolerations) != 6 || pod.Labels[kruise.PodRevisionLabelKey] != set.Status.UpdateRevision ||
		strings.Contains(set.Status.UpdateRevision, "-") || pod.Labels[kruise.LifecycleStateKey] != "" {
		t.Errorf("pod %+v of %+v", pod, set.Status)
	}
	m.delete(pod)
	m.becomes(set, "n1:1 n2:1 n3:1")
	if now := m.on("n2"); now.UID == pod.UID {
		t.Error("the deleted pod is still there")
	}
	m.idle()
}

// Nodes that join, fit and do not fit any more get and lose their pods.
func TestNodes(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create(func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"color": "blue"} })
	m.stays("")
	m.label("n1", "color", "blue")
	m.becomes(set, "n1:1")
	m.label("n1", "color", "green")
	m.becomes(set, "")
	m.change(set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"color": "green"} })
	m.becomes(set, "n1:1")
	m.addNode("n3", func(n *corev1.Node) { n.Labels["color"] = "green"; n.Spec.Unschedulable = true })
	m.becomes(set, "n1:1 n3:1")
	m.idle()
}

// NoSchedule keeps the pod that is there, and gets no other; NoExecute ends it. An update leaves a pod that would not
// come back.
func TestTaints(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create()
	m.becomes(set, "n1:1 n2:1")
	m.taint("n1", corev1.TaintEffectNoSchedule)
	m.stays("n1:1 n2:1")
	m.change(set, image("agent:2"))
	m.becomes(set, "n1:1 n2:2")
	m.change(set, inPlace)
	m.stays("n1:1 n2:2")
	m.delete(m.on("n1"))
	m.stays("n2:2")
	m.taint("n2", corev1.TaintEffectNoExecute)
	m.becomes(set, "")
	m.taint("n1")
	m.becomes(set, "n1:2")
	m.taint("n1", corev1.TaintEffectNoSchedule)
	m.change(set, image("agent:3"))
	m.becomes(set, "n1:3") // it has the gate now, and stays where it is
	m.idle()
}

// A recreating rollout goes from the last node to the first, with no more than the budget unavailable.
func TestStandard(t *testing.T) {
	m := newModel(t, 5, daemonset.Options{})
	set := m.create(unavailable("2"))
	m.eventually(set, settled(5))
	m.change(set, image("agent:2"))
	m.Eventually(func() error {
		if n := strings.Count(m.picture(), "-") + strings.Count(m.picture(), "*") + 5 - len(m.pods()); n > 2 {
			t.Fatalf("%d unavailable: %s", n, m.picture())
		}
		m.look(set)
		return settled(5)(set)
	})
	m.idle()
	m.change(set, image("agent:broken"))
	m.stays("n1:2 n2:2 n3:2 n4:broken- n5:broken-")
	m.change(set, image("agent:3")) // what is broken is replaced first, and takes no others
	m.becomes(set, "n1:3 n2:3 n3:3 n4:3 n5:3")
}

// Old pods that are not ready are all replaced at once, whatever the budget.
func TestUnready(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create(image("agent:broken"))
	m.stays("n1:broken- n2:broken- n3:broken-")
	m.change(set, image("agent:2"))
	m.becomes(set, "n1:2 n2:2 n3:2")
}

// A rollout in place keeps each pod, in three writes a pod.
func TestUpdateInPlace(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create(inPlace)
	m.eventually(set, settled(3))
	before := uids(m.pods())
	m.Server.Requests()
	m.change(set, image("agent:2"))
	m.eventually(set, settled(3))
	if now := uids(m.pods()); !slices.Equal(before, now) {
		t.Errorf("pods %v became %v", before, now)
	}
	if writes := requests.About(m.Server.Requests(), "PATCH pods/"); len(writes) != 9 {
		t.Errorf("%d writes of three pods, want 9: %v", len(writes), writes)
	}
	if n := len(m.Server.Events(set, "SuccessfulUpdatePodInPlace")); n != 3 {
		t.Errorf("%d events of updates, want 3", n)
	}
	m.idle()
	m.change(set, func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "a", Value: "b"}}
	})
	m.eventually(set, settled(3))
	if slices.Equal(before, uids(m.pods())) {
		t.Error("a change of an environment keeps the pods")
	}
}

// Pods that a recreating strategy has created have no gate: the first update recreates them, and the second one is in
// place.
func TestSwitchToInPlace(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(2))
	first := uids(m.pods())
	m.change(set, inPlace)
	m.Still()
	m.change(set, image("agent:2"))
	m.eventually(set, settled(2))
	second := uids(m.pods())
	m.change(set, image("agent:3"))
	m.eventually(set, settled(2))
	if slices.Equal(first, second) || !slices.Equal(second, uids(m.pods())) {
		t.Errorf("pods %v became %v, then %v", first, second, uids(m.pods()))
	}
}

// With a surge, a node has its old pod until the new one is available.
func TestSurge(t *testing.T) {
	m := newModel(t, 5, daemonset.Options{})
	set := m.create(surge("2"))
	m.eventually(set, settled(5))
	m.Advance(time.Minute)
	m.change(set, image("agent:2"), func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = 10 })
	m.stays("n1:1 n2:1 n3:1 n4:1 n4:2 n5:1 n5:2")
	m.Advance(5 * time.Second)
	m.stays("n1:1 n2:1 n3:1 n4:1 n4:2 n5:1 n5:2")
	m.Eventually(func() error {
		if n := len(m.pods()); n > 7+strings.Count(m.picture(), "*") {
			t.Fatalf("%d pods: %s", n, m.picture())
		}
		m.look(set)
		return settled(5)(set)
	})
	m.stays("n1:2 n2:2 n3:2 n4:2 n5:2")
	m.idle()
}

// Old pods that are not ready are surged at once, and removed.
func TestSurgeUnready(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create(surge("1"), image("agent:broken"))
	m.stays("n1:broken- n2:broken- n3:broken-")
	m.change(set, image("agent:2"))
	m.becomes(set, "n1:2 n2:2 n3:2")
}

// A partition counts nodes that are kept, of those that are eligible, and new pods always have the new revision.
func TestPartition(t *testing.T) {
	m := newModel(t, 5, daemonset.Options{})
	set := m.create(inPlace, partition("50%"))
	m.eventually(set, settled(5))
	m.change(set, image("agent:2"))
	m.becomes(set, "n1:1 n2:1 n3:2 n4:2 n5:2")
	m.delete(m.on("n1"))
	m.becomes(set, "n1:2 n2:1 n3:2 n4:2 n5:2")
	m.change(set, partition("9"))
	m.stays("n1:2 n2:1 n3:2 n4:2 n5:2")
	m.change(set, partition("0"))
	m.eventually(set, settled(5))
	m.idle()
}

// The selector names the nodes to update; what was updated stays so.
func TestSelector(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create(inPlace, rolling(func(u *v1beta1.RollingUpdateDaemonSet) {
		u.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}}
	}))
	m.eventually(set, settled(3))
	m.change(set, image("agent:2"))
	m.stays("n1:1 n2:1 n3:1")
	m.label("n2", "canary", "true")
	m.becomes(set, "n1:1 n2:2 n3:1")
	m.label("n2", "canary", "-")
	m.stays("n1:1 n2:2 n3:1")
	m.idle()
}

func TestPaused(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create(paused(true))
	m.eventually(set, settled(2))
	m.change(set, image("agent:2"))
	m.stays("n1:1 n2:1")
	m.addNode("n3")
	m.becomes(set, "n1:1 n2:1 n3:2")
	m.change(set, paused(false))
	m.becomes(set, "n1:2 n2:2 n3:2")
}

func TestOnDelete(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create(func(s *v1beta1.DaemonSet) { s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteDaemonSetStrategyType })
	m.eventually(set, settled(2))
	m.change(set, image("agent:2"))
	m.stays("n1:1 n2:1")
	m.delete(m.on("n1"))
	m.becomes(set, "n1:2 n2:1")
	m.idle()
}

// A hook holds one pod at a time, and a pod that is wanted again is released from its deletion.
func TestPreDeleteHook(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create(hooked)
	m.eventually(set, settled(2))
	states := func() string {
		m.Still()
		return m.on("n1").Labels[kruise.LifecycleStateKey] + "," + m.on("n2").Labels[kruise.LifecycleStateKey]
	}
	m.change(set, image("agent:2"))
	if got := states(); got != ",PreparingDelete" {
		t.Errorf("states %q", got)
	}
	m.change(set, image("agent:1")) // a way back
	if got := states(); strings.Contains(got, "PreparingDelete") {
		t.Errorf("states %q", got)
	}
	m.change(set, image("agent:2"))
	held := m.on("n2")
	if got := states(); got != ",PreparingDelete" {
		t.Errorf("states %q", got)
	}
	m.edit(held, `{"metadata":{"labels":{"hold":null}}}`)
	m.becomes(set, "n1:1 n2:2")
	if got := states(); got != "PreparingDelete," {
		t.Errorf("states %q", got)
	}
	m.change(set, func(s *v1beta1.DaemonSet) { s.Spec.Lifecycle = nil })
	m.becomes(set, "n1:2 n2:2")
}

// Pods that fail are replaced less and less often.
func TestFailed(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(1))
	for _, pause := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
		failed := m.on("n1")
		m.fail(failed)
		since := m.Clock
		m.eventually(set, func(*v1beta1.DaemonSet) error {
			if pods := m.pods(); len(pods) == 1 && pods[0].UID != failed.UID && isReady(&pods[0]) {
				return nil
			}
			return errWait
		})
		if took := m.Clock.Sub(since); took < pause-time.Second || took > pause+time.Second {
			t.Errorf("replaced after %v, want %v", took, pause)
		}
	}
	if n := len(m.Server.Events(set, "FailedDaemonPod")); n != 4 {
		t.Errorf("%d events, want 4", n)
	}
}

// The first pass creates as many pods as the burst allows.
func TestBurst(t *testing.T) {
	m := newModel(t, 7, daemonset.Options{})
	m.create(func(s *v1beta1.DaemonSet) { s.Spec.BurstReplicas = amount("5") })
	m.Reconcile()
	if n := len(m.pods()); n != 5 {
		t.Errorf("%d pods, want 5", n)
	}
	m.Still()
	m.Eventually(func() error {
		if len(m.pods()) == 7 {
			return nil
		}
		return errWait
	})
}

// Of two pods on a node, the older one stays. A pod that waits for a node that is gone is deleted.
func TestDuplicates(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(1))
	first := m.on("n1")
	second := first.DeepCopy()
	second.Name, second.UID, second.ResourceVersion = "agent-second", "", ""
	if err := m.Server.Create(m.Context(), second); err != nil {
		t.Fatal(err)
	}
	stray := second.DeepCopy()
	stray.Name, stray.UID, stray.ResourceVersion, stray.Spec.NodeName = "agent-stray", "", "", ""
	stray.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].
		Values[0] = "gone"
	if err := m.Server.Create(m.Context(), stray); err != nil {
		t.Fatal(err)
	}
	m.becomes(set, "n1:1")
	if m.on("n1").UID != first.UID {
		t.Error("the older pod is gone")
	}
}

// Orphans of the set's names are adopted, others are left, and a rollback uses an earlier revision again.
func TestHistory(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create(func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = ptr.To[int32](0) })
	m.eventually(set, settled(1))
	first := set.Status.UpdateRevision
	m.edit(m.on("n1"), `{"metadata":{"ownerReferences":null}}`)
	m.Still()
	if metav1.GetControllerOf(m.on("n1")) == nil || len(m.pods()) != 1 {
		t.Errorf("not adopted: %s", m.picture())
	}
	m.change(set, paused(true), image("agent:2"))
	m.Still()
	m.change(set, image("agent:1"), paused(false))
	m.eventually(set, settled(1))
	if set.Status.UpdateRevision != first {
		t.Errorf("revision %s, want %s", set.Status.UpdateRevision, first)
	}
	m.idle()
}

// An exported manifest has the generation of its template in an annotation, which does not stop rollouts.
func TestTemplateGeneration(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create(func(s *v1beta1.DaemonSet) {
		s.Annotations = map[string]string{"deprecated.daemonset.template.generation": "3"}
	})
	m.eventually(set, settled(1))
	if got := m.on("n1").Labels["pod-template-generation"]; got != "3" {
		t.Errorf("generation %q", got)
	}
	m.change(set, image("agent:2"))
	m.becomes(set, "n1:2")
	m.edit(m.on("n1"), `{"metadata":{"labels":{"controller-revision-hash":null}}}`)
	m.change(set, image("agent:3"))
	m.stays("n1:2")
}
