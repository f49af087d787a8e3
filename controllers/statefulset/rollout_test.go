package statefulset

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/requests"
)

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
	m := newModel(t, Options{})
	set := m.create("web", 3, inPlace)
	m.eventually(set, settled(3))
	before := uids(m.pods(set))
	m.Server.Requests()
	m.change(set, withImage("web:2"))
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
	m.Idle()
}

func uids(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, string(pods[i].UID))
	}
	return all
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
			m := newModel(t, Options{})
			set := m.create("web", 3, withClaims(c.deleted, c.scaled))
			m.eventually(set, settled(3))
			m.Idle()
			m.change(set, scaled(1))
			m.becomes(set, "0:1")
			m.CollectClaims()
			if got := m.claims(); !slices.Equal(got, c.after) {
				t.Errorf("%s: claims %v after the scale-in, want %v", c.why, got, c.after)
			}
			m.Look(set)
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
	m := newModel(t, Options{})
	set := m.create("web", 2, withClaims(keeps, deletes))
	m.eventually(set, settled(2))
	m.change(set, scaled(1))
	m.becomes(set, "0:1")
	m.change(set, scaled(2))
	m.stays(set, "0:1")
	m.Look(set)
	if got := m.Server.Events(set, "FailedCreate"); len(got) != 1 || len(set.Status.Conditions) != 1 ||
		set.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("events %v, conditions %v", got, set.Status.Conditions)
	}
	m.CollectClaims()
	m.eventually(set, settled(2))
	if c := set.Status.Conditions; len(c) != 1 || c[0].Status != corev1.ConditionFalse {
		t.Errorf("conditions %v, want one that is False", c)
	}
	m.Idle()
}

// A stored spec that no webhook validated is reported once, and costs no request until it is corrected.
func TestInvalidSets(t *testing.T) {
	for name, c := range map[string]struct {
		why         string
		spoil, mend func(*v1beta1.StatefulSet)
		pods        string
	}{
		"replicas": {"no pass names two billion slots", scaled(2_000_000_000), scaled(1), ""},
		"start":    {"0 counts, as no ordinal is negative", start(-1), start(0), "0:1"},
		"reserved": {
			why:   "a range that cannot be parsed leaves the pods as they are",
			spoil: reserve("5-2"),
			mend:  func(s *v1beta1.StatefulSet) { s.Spec.ReserveOrdinals = nil },
		},
		"maxUnavailable": {
			why:   "the default counts",
			spoil: maxUnavailable("x"),
			mend:  rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) { u.MaxUnavailable = nil }),
			pods:  "0:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, Options{})
			set := m.create("web", 1, c.spoil)
			m.stays(set, c.pods)
			m.Idle()
			if got := m.Server.Events(set, "InvalidSpec"); len(got) != 1 {
				t.Errorf("%s: events %v, want one", c.why, got)
			}
			m.change(set, c.mend)
			m.eventually(set, settled(1))
		})
	}
}
