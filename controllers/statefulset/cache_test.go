package statefulset

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A pod that the reconciler has deleted, and that the cache shows as before, is no failure.
func TestDeletedBehindCache(t *testing.T) {
	m := newModel(t, Options{})
	set := m.create("web", 1)
	ready := func() error {
		if m.Look(set); set.Status.UpdatedReadyReplicas != 1 || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	}
	m.Eventually(ready)
	lagging, catchUp := m.FrozenPods()
	m.restart(lagging)
	m.change(set, func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "web:2" })
	for range 3 {
		m.Reconcile()
	}
	if m.Look(set); len(m.Server.Events(set, "FailedCreate")) > 0 || len(set.Status.Conditions) > 0 ||
		m.pod(set, 0).DeletionTimestamp == nil {
		t.Errorf("events %v, conditions %v", m.Server.Events(set, "FailedCreate"), set.Status.Conditions)
	}
	catchUp()
	m.Eventually(ready)
	if events := m.Server.Events(set, "FailedCreate"); len(events) > 0 {
		t.Errorf("events %v", events)
	}
}

// claimUIDs returns the UIDs of all claims by name: another UID is another volume.
func (m *model) claimUIDs() map[string]types.UID {
	m.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := m.Server.List(m.Context(), &list); err != nil {
		m.Fatal(err)
	}
	uids := map[string]types.UID{}
	for i := range list.Items {
		uids[list.Items[i].Name] = list.Items[i].UID
	}
	return uids
}

// A new leader whose list of sets is older than its list of pods does not undo what the user has asked for since. It
// reads the set once past the cache, and only where it would do harm otherwise.
func TestNewLeaderWithOlderSet(t *testing.T) {
	for name, c := range map[string]struct {
		why    string
		before changes
		change changes
		want   string
	}{
		"scaled out in order": {
			why:    "claims are handed over before it is the turn of their pods",
			change: changes{scaled(5)},
			want:   "0:1 1:1 2:1 3:1 4:1",
		},
		"updated": {
			why:    "no pod goes back to the revision before",
			before: changes{parallel},
			change: changes{withImage("web:2")},
			want:   "0:2 1:2 2:2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, Options{})
			set := m.create("db", 3, append(c.before, withClaims(keeps, deletes))...)
			m.becomes(set, "0:1 1:1 2:1")
			if reads := m.Live.Reads(); len(reads) > 0 {
				t.Errorf("pods are created after the reads %v", reads)
			}
			earlier := m.Server.Snapshot()
			m.change(set, c.change...)
			m.becomes(set, c.want)
			pods, claims := uidsOf(m.pods(set)), m.claimUIDs()
			m.Live.Reads()

			cache := m.Behind(earlier)
			m.restart(cache) // another replica leads
			for range 5 {
				m.Reconcile()
				m.RunPods()
				m.CollectClaims()
			}
			cache.Thaw()
			m.becomes(set, c.want)
			m.CollectClaims()
			if !maps.Equal(pods, uidsOf(m.pods(set))) || !maps.Equal(claims, m.claimUIDs()) {
				t.Errorf("%s: pods %v became %v, claims %v became %v",
					c.why, pods, uidsOf(m.pods(set)), claims, m.claimUIDs())
			}
			m.change(set, scaled(2))
			m.becomes(set, "0:"+c.want[2:3]+" 1:"+c.want[2:3])
			if reads := m.Live.Reads(); !slices.Equal(reads, []string{"get StatefulSet metadata"}) {
				t.Errorf("reads past the cache: %v, want one", reads)
			}
		})
	}
}

func uidsOf(pods []corev1.Pod) map[string]types.UID {
	uids := map[string]types.UID{}
	for i := range pods {
		uids[pods[i].Name] = pods[i].UID
	}
	return uids
}

// A new leader that shows an older set does not act on a set that was deleted, and made again with the same name.
func TestNewLeaderWithTheSetBefore(t *testing.T) {
	m := newModel(t, Options{})
	set := m.create("db", 1, parallel, withClaims(keeps, deletes))
	m.becomes(set, "0:1")
	m.change(set, scaled(0)) // an earlier spec would delete the pod that is left
	earlier := m.Server.Snapshot()
	m.change(set, scaled(1))
	m.becomes(set, "0:1")
	pod := m.pod(set, 0)
	m.Live.Reads()
	m.restart(m.Behind(earlier))
	if err := m.Server.Delete(m.Context(), set); err != nil {
		t.Fatal(err)
	}
	set = m.create("db", 1, parallel)
	for range 3 {
		m.Reconcile()
	}
	if now := m.pod(set, 0); now.UID != pod.UID || now.DeletionTimestamp != nil {
		t.Errorf("the pod of a set that was deleted is deleted by its older spec: %v", now.DeletionTimestamp)
	}
	if reads := m.Live.Reads(); len(reads) != 1 {
		t.Errorf("reads past the cache: %v, want one", reads)
	}
}
