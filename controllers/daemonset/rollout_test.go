package daemonset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// How many pods the first pass creates.
func TestFirstPass(t *testing.T) {
	for why, c := range map[string]struct {
		nodes  int
		change func(*v1beta1.DaemonSet)
		want   int
	}{
		"the default burst": {300, func(*v1beta1.DaemonSet) {}, 250},
		"burstReplicas":     {7, func(s *v1beta1.DaemonSet) { s.Spec.BurstReplicas = amount("5") }, 5},
		"progressive creation stops at the partition": {
			5, func(s *v1beta1.DaemonSet) { progressive(s); partition("3")(s) }, 2,
		},
	} {
		m := newModel(t, c.nodes, daemonset.Options{})
		m.create(c.change)
		m.Reconcile()
		if n := len(m.pods()); n != c.want {
			t.Errorf("%s: %d pods after a pass, want %d", why, n, c.want)
		}
	}
}

// What the pods become after a change of the image. A deleted pod comes back with the new one.
func TestSettings(t *testing.T) {
	type changes = []func(*v1beta1.DaemonSet)
	onDelete := func(s *v1beta1.DaemonSet) { s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteDaemonSetStrategyType }
	canary := rolling(func(u *v1beta1.RollingUpdateDaemonSet) {
		u.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: "n2"}}
	})
	minReady := func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = 10 }
	for why, c := range map[string]struct {
		nodes int
		set   changes
		want  string
	}{
		"a paused set updates no pod":        {2, changes{paused(true)}, "n1:1 n2:1"},
		"the user deletes pods":              {2, changes{onDelete}, "n1:1 n2:1"},
		"also those that a selector matches": {2, changes{canary, onDelete}, "n1:1 n2:1"},
		"a selector names the nodes":         {3, changes{inPlace, canary}, "n1:1 n2:2 n3:1"},
		"a partition keeps the first nodes":  {5, changes{inPlace, partition("50%")}, "n1:1 n2:1 n3:2 n4:2 n5:2"},
		"old pods stay for minReadySeconds":  {2, changes{surge("100%"), minReady}, "n1:1 n1:2 n2:1 n2:2"},
		"a pod is updated minReadySeconds after another": {
			3, changes{unavailable("1"), minReady}, "n1:1 n2:1 n3:2",
		},
	} {
		t.Run(why, func(t *testing.T) {
			m := newModel(t, c.nodes, daemonset.Options{})
			set := m.create(c.set...)
			m.eventually(set, settled(int32(c.nodes)))
			m.change(set, image("agent:2"))
			m.stays(c.want)
			m.delete(m.on("n1"))
			if m.Still(); !strings.HasPrefix(m.picture(), "n1:2") {
				t.Errorf("pods %q after the deletion on n1", m.picture())
			}
		})
	}
}

// Another strategy with the same template touches no pod.
func TestStrategyChange(t *testing.T) {
	m := newModel(t, 3, daemonset.Options{})
	set := m.create(unavailable("1"))
	m.eventually(set, settled(3))
	before := uids(m.pods())
	for name, change := range map[string]func(*v1beta1.DaemonSet){
		"in place": inPlace, "budget": unavailable("100%"), "partition": partition("2"), "paused": paused(true),
		"surge": func(s *v1beta1.DaemonSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{
				Type: v1beta1.StandardRollingUpdateType, MaxSurge: amount("1"), MaxUnavailable: amount("0"),
			}
		},
		"users delete pods": func(s *v1beta1.DaemonSet) {
			s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.OnDeleteDaemonSetStrategyType}
		},
	} {
		m.Server.Requests()
		m.change(set, change)
		m.Still()
		for _, request := range m.Server.Requests() {
			if strings.Contains(request, " pods/") {
				t.Errorf("%s: %s", name, request)
			}
		}
	}
	if diff := cmp.Diff(before, uids(m.pods())); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
}

// A pod with the label apps.kruise.io/specified-delete stays, as in the reference: DaemonSets do not delete pods by it.
func TestSpecifiedDeleteHasNoEffect(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create()
	m.becomes(set, "n1:1 n2:1")
	m.eventually(set, settled(2))
	pod := m.on("n1")
	m.edit(pod, `{"metadata":{"labels":{"`+kruise.SpecifiedDeleteKey+`":"true"}}}`)
	m.becomes(set, "n1:1 n2:1")
	m.idle()
	if is := m.on("n1"); is.UID != pod.UID {
		t.Errorf("%s replaces %s", is.Name, pod.Name)
	}
}

// A stored set that selects all pods is left as it is, with the event of the built-in DaemonSet.
func TestSelectingAll(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create(func(s *v1beta1.DaemonSet) { s.Spec.Selector = &metav1.LabelSelector{} })
	for range 3 {
		m.Reconcile()
	}
	if all, invalid := m.Server.Events(set, "SelectingAll"), m.Server.Events(set, "InvalidSpec"); len(all) != 1 ||
		all[0].Type != "Warning" || len(invalid) != 0 {
		t.Errorf("events %v, %v, want one SelectingAll", all, invalid)
	}
	if pods := m.pods(); len(pods) != 0 {
		t.Errorf("%d pods", len(pods))
	}
	m.change(set, func(s *v1beta1.DaemonSet) { s.Spec.Selector.MatchLabels = map[string]string{"app": "other"} })
	m.Reconcile()
	if invalid := m.Server.Events(set, "InvalidSpec"); len(invalid) != 1 {
		t.Errorf("events %v, want one about a selector that does not match", invalid)
	}
}
