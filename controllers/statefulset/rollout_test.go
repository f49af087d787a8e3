package statefulset_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/test/requests"
)

const (
	keeps   = v1beta1.RetainPersistentVolumeClaimRetentionPolicyType
	deletes = v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
)

// A set is created in order, waits for a pod that is not ready, and costs nothing once it is done.
func TestCreateInOrder(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 3, func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Annotations = map[string]string{unready: ""}
	})
	m.becomes(set, "0:1-")
	m.edit(m.pod(set, 0), `{"annotations":{"`+unready+`":null}}`)
	m.becomes(set, "0:1 1:1-")
	m.edit(m.pod(set, 1), `{"annotations":{"`+unready+`":null}}`)
	m.becomes(set, "0:1 1:1 2:1-")
	m.edit(m.pod(set, 2), `{"annotations":{"`+unready+`":null}}`)
	m.eventually(set, settled(3))
	m.idle()
	if got := len(m.Server.Events(set, "SuccessfulCreate")); got != 3 {
		t.Errorf("%d events of creations, want 3", got)
	}
}

// settled expects a status that reports that all pods are updated and available.
func settled(n int32) func(*v1beta1.StatefulSet) error {
	return func(set *v1beta1.StatefulSet) error {
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.Replicas != n || s.UpdatedReplicas != n || s.AvailableReplicas != n ||
			s.CurrentReplicas != n || s.CurrentRevision != s.UpdateRevision {
			return fmt.Errorf("status has not settled at %d", n)
		}
		return nil
	}
}

// A rollout in place keeps each pod, from the last to the first, in three writes a pod and one for the lifecycle state.
func TestUpdateInPlace(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 3, inPlace)
	m.eventually(set, settled(3))
	before := uids(m.pods(set))
	m.Server.Requests()
	m.change(set, image("web:2"))
	m.eventually(set, settled(3))
	if now := uids(m.pods(set)); !slices.Equal(before, now) {
		t.Errorf("pods %v became %v", before, now)
	}
	if writes := requests.About(m.Server.Requests(), "PATCH pods/"); len(writes) != 12 {
		t.Errorf("%d writes of three pods, want 12: %v", len(writes), writes)
	}
	var order []string
	for _, event := range m.Server.Events(set, "SuccessfulUpdatePodInPlace") {
		order = append(order, event.Message[len("successfully update pod "):][:5])
	}
	if !slices.Equal(order, []string{"web-2", "web-1", "web-0"}) {
		t.Errorf("updated in the order %v", order)
	}
	m.idle()
}

func uids(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, string(pods[i].UID))
	}
	return all
}

// A partition is counted in pods, each pod comes back at the revision of its place, and the last step completes the
// rollout.
func TestPartition(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 3, partition(3))
	m.eventually(set, settled(3))
	m.change(set, image("web:2"))
	m.stays(set, "0:1 1:1 2:1")
	m.change(set, partition(2))
	m.becomes(set, "0:1 1:1 2:2")
	m.delete(m.pod(set, 0))
	m.delete(m.pod(set, 2))
	m.becomes(set, "0:1 1:1 2:2")
	if m.look(set); set.Status.CurrentRevision == set.Status.UpdateRevision {
		t.Error("the rollout is complete, and two pods are old")
	}
	m.change(set, partition(0))
	m.eventually(set, settled(3))
	m.becomes(set, "0:2 1:2 2:2")
}

// A canary that is alone for a moment does not complete the rollout.
func TestCanaryAlone(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 2, parallel, partition(1))
	m.eventually(set, settled(2))
	m.change(set, image("web:2"))
	m.becomes(set, "0:1 1:2")
	m.change(set, scaled(0))
	m.becomes(set, "")
	m.change(set, scaled(2))
	m.becomes(set, "0:1 1:2")
}

// A rollback to an earlier template uses its revision again, with a higher number, and history beyond the limit is
// deleted.
func TestRollback(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	limit := int32(1)
	set := m.create("web", 1, func(s *v1beta1.StatefulSet) { s.Spec.RevisionHistoryLimit = &limit })
	m.eventually(set, settled(1))
	first := set.Status.UpdateRevision
	for _, tag := range []string{"web:2", "web:1"} {
		m.change(set, image(tag))
		m.eventually(set, settled(1))
	}
	if set.Status.UpdateRevision != first {
		t.Errorf("revision %s after the rollback, want %s", set.Status.UpdateRevision, first)
	}
	for _, tag := range []string{"web:3", "web:4", "web:5"} {
		m.change(set, image(tag))
		m.eventually(set, settled(1))
	}
	m.Still()
	if got := m.revisions(); len(got) != 2 {
		t.Errorf("%d revisions, want the live one and one more", len(got))
	}
}

// OnDelete leaves the update to the user.
func TestOnDelete(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 2, func(s *v1beta1.StatefulSet) { s.Spec.UpdateStrategy.Type = "OnDelete" })
	m.becomes(set, "0:1 1:1")
	m.change(set, image("web:2"))
	m.stays(set, "0:1 1:1")
	m.delete(m.pod(set, 0))
	m.becomes(set, "0:2 1:1")
}

// Reserving the ordinal of a pod replaces the pod by one beyond the end; with one replica fewer it only goes.
func TestReserve(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	reserve := func(items ...intstr.IntOrString) func(*v1beta1.StatefulSet) {
		return func(s *v1beta1.StatefulSet) { s.Spec.ReserveOrdinals = items }
	}
	one, three := intstr.FromInt32(1), intstr.FromInt32(3)
	set := m.create("web", 4, parallel, reserve(one))
	m.becomes(set, "0:1 2:1 3:1 4:1")
	m.change(set, reserve(one, three))
	m.becomes(set, "0:1 2:1 4:1 5:1")
	m.change(set, reserve(one, three, intstr.FromString("4-9")), scaled(2))
	m.becomes(set, "0:1 2:1")
}

// Claims of pods that are not wanted any more are deleted with their pods where the policy says so, and a pod that is
// wanted again waits for the deletion of its claim.
func TestRetention(t *testing.T) {
	for name, c := range map[string]struct {
		why         string
		deleted     v1beta1.PersistentVolumeClaimRetentionPolicyType
		scaled      v1beta1.PersistentVolumeClaimRetentionPolicyType
		after, gone []string
	}{
		"Retain, Retain": {
			why:     "all claims stay",
			deleted: keeps,
			scaled:  keeps,
			after:   []string{"data-web-0", "data-web-1", "data-web-2"},
			gone:    []string{"data-web-0", "data-web-1", "data-web-2"},
		},
		"Retain, Delete": {"the claims of two pods go", keeps, deletes, []string{"data-web-0"}, []string{"data-web-0"}},
		"Delete, Retain": {
			why:     "the claims go with the set",
			deleted: deletes,
			scaled:  keeps,
			after:   []string{"data-web-0", "data-web-1", "data-web-2"},
			gone:    []string{},
		},
		"Delete, Delete": {"both", deletes, deletes, []string{"data-web-0"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, statefulset.Options{})
			set := m.create("web", 3, withClaims(c.deleted, c.scaled))
			m.eventually(set, settled(3))
			m.idle()
			m.change(set, scaled(1))
			m.becomes(set, "0:1")
			m.CollectClaims()
			if got := m.claims(); !slices.Equal(got, c.after) {
				t.Errorf("%s: claims %v after the scale-in, want %v", c.why, got, c.after)
			}
			m.look(set)
			m.delete(set)
			m.CollectClaims()
			if got := m.claims(); !slices.Equal(got, c.gone) {
				t.Errorf("%s: claims %v without the set, want %v", c.why, got, c.gone)
			}
		})
	}
}

// A pod that is wanted again before its claim is deleted waits, reports what for, and is created when the claim is
// gone.
func TestStaleClaim(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 2, withClaims(keeps, deletes))
	m.eventually(set, settled(2))
	m.change(set, scaled(1))
	m.becomes(set, "0:1")
	m.change(set, scaled(2))
	m.stays(set, "0:1")
	m.look(set)
	if got := m.Server.Events(set, "FailedCreate"); len(got) != 1 || len(set.Status.Conditions) != 1 ||
		set.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("events %v, conditions %v", got, set.Status.Conditions)
	}
	m.CollectClaims()
	m.eventually(set, settled(2))
	if c := set.Status.Conditions; len(c) != 1 || c[0].Status != corev1.ConditionFalse {
		t.Errorf("conditions %v, want one that is False", c)
	}
	m.idle()
}

// A hook holds a pod before its update in place, which goes on when the hook is gone, in order too; the next pod
// follows when the hook is restored.
func TestUpdateHook(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 2, inPlace, func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Labels["example.com/hook"] = "true"
		s.Spec.Lifecycle = &kruise.Lifecycle{
			InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}},
		}
	})
	m.eventually(set, settled(2))
	m.change(set, image("web:2"))
	state := func(ordinal int32, want kruise.LifecycleState, tag string) {
		t.Helper()
		m.Still()
		pod := m.pod(set, ordinal)
		if got := pod.Labels[kruise.LifecycleStateKey]; got != string(want) || pod.Spec.Containers[0].Image != tag {
			t.Fatalf("pod %d is %s with %s, want %s with %s", ordinal, got, pod.Spec.Containers[0].Image, want, tag)
		}
	}
	for _, ordinal := range []int32{1, 0} {
		state(ordinal, kruise.LifecycleStatePreparingUpdate, "web:1")
		m.edit(m.pod(set, ordinal), `{"labels":{"example.com/hook":null}}`)
		state(ordinal, kruise.LifecycleStateUpdated, "web:2")
		m.edit(m.pod(set, ordinal), `{"labels":{"example.com/hook":"true"}}`)
	}
	m.eventually(set, settled(2))
}

// A pod that loses its labels is released, and adopted when they return; its name is taken meanwhile.
func TestReleaseAndAdopt(t *testing.T) {
	m := newModel(t, statefulset.Options{})
	set := m.create("web", 2)
	m.eventually(set, settled(2))
	before := uids(m.pods(set))
	m.edit(m.pod(set, 1), `{"labels":{"app":"other"}}`)
	m.stays(set, "0:1")
	if refs := m.pod(set, 1).OwnerReferences; len(refs) != 0 {
		t.Errorf("the pod is not released: %v", refs)
	}
	m.edit(m.pod(set, 1), `{"labels":{"app":"web"}}`)
	m.eventually(set, settled(2))
	if now := uids(m.pods(set)); !slices.Equal(before, now) {
		t.Errorf("pods %v became %v", before, now)
	}
}

// A stored spec that no webhook validated is reported once, and costs no request until it is corrected.
func TestInvalidSets(t *testing.T) {
	start := func(n int32) func(*v1beta1.StatefulSet) {
		return func(s *v1beta1.StatefulSet) { s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: n} }
	}
	reserve := func(items ...intstr.IntOrString) func(*v1beta1.StatefulSet) {
		return func(s *v1beta1.StatefulSet) { s.Spec.ReserveOrdinals = items }
	}
	for name, c := range map[string]struct {
		why         string
		spoil, mend func(*v1beta1.StatefulSet)
		pods        string
	}{
		"replicas": {"no pass names two billion slots", scaled(2_000_000_000), scaled(1), ""},
		"start":    {"0 counts, as no ordinal is negative", start(-1), start(0), "0:1"},
		"reserved": {
			why:   "a range that cannot be parsed leaves the pods as they are",
			spoil: reserve(intstr.FromString("5-2")),
			mend:  reserve(),
		},
		"maxUnavailable": {
			why: "the default counts",
			spoil: rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
				v := intstr.FromString("x")
				u.MaxUnavailable = &v
			}),
			mend: rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) { u.MaxUnavailable = nil }),
			pods: "0:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, statefulset.Options{})
			set := m.create("web", 1, c.spoil)
			m.stays(set, c.pods)
			m.idle()
			if got := m.Server.Events(set, "InvalidSpec"); len(got) != 1 {
				t.Errorf("%s: events %v, want one", c.why, got)
			}
			m.change(set, c.mend)
			m.eventually(set, settled(1))
		})
	}
}
