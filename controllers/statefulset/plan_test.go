package statefulset

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

type changes = []func(*v1beta1.StatefulSet)

// planCase is a set, what it owns, and the writes of its next pass.
type planCase struct {
	options  Options
	replicas int32
	set      changes
	pods     []*corev1.Pod
	claims   []*corev1.PersistentVolumeClaim
	want     string
	// after is when the next pass is due although nothing changes; zero for never.
	after time.Duration
}

func checkPlans(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			o := observe(t, c.replicas, c.set...)
			c.options.Now, c.options.Live = o.options.Now, o.server
			o.options = c.options
			o.pods(c.pods...)
			for _, claim := range c.claims {
				o.put(claim, types.UID("uid-"+claim.Name))
			}
			sent, after := o.writes()
			if got := strings.Join(sent, ", "); got != c.want || c.after != 0 && after != c.after {
				t.Errorf("%q, and the next pass after %s; want %q, and %s", got, after, c.want, c.after)
			}
		})
	}
}

func pod(name, image string, changes ...podtest.Change) *corev1.Pod {
	return podtest.New(name, image, changes...)
}

// How many pods are created and deleted, and which.
func TestPlanScale(t *testing.T) {
	checkPlans(t, map[string]planCase{
		"ordered, new: the first pod comes first": {replicas: 3, want: "create web-0 of web:1"},
		"ordered, minReady: the pod is not available for another 59 seconds": {
			replicas: 3,
			set:      changes{minReady(60)},
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.ReadyFor(time.Second))},
			after:    59 * time.Second,
		},
		"parallel: all are created at once, whatever minReadySeconds": {
			replicas: 3,
			set:      changes{parallel, minReady(60)},
			want:     "create web-0 of web:1, create web-1 of web:1, create web-2 of web:1",
		},
		"parallel, limited: two may be unavailable": {
			replicas: 5, set: changes{parallel, scalesWith(2)}, want: "create web-0 of web:1, create web-1 of web:1",
		},
		"parallel, canary: a broken canary at the top does not hold back a drained pod": {
			replicas: 4,
			set:      changes{parallel, inPlace, withImage("web:2"), maxUnavailable(2), scalesWith(2)},
			pods:     parse("1:1 2:2- 3:2-"),
			want:     "create web-0 of web:2",
		},
		"parallel, percentage: 20% of 3 is at least 1": {
			replicas: 3, set: changes{parallel, scalesWith("20%")}, want: "create web-0 of web:1",
		},
		"ordered, down: the last pod goes first, alone": {replicas: 1, pods: parse("0:1 1:1 2:1"), want: "delete web-2"},
		"down, parallel: all go at once": {
			replicas: 1, set: changes{parallel}, pods: parse("0:1 1:1 2:1"), want: "delete web-2, delete web-1",
		},
		"down, name is taken: a pod of another owner has a wanted name; what is too many goes": {
			replicas: 2, set: changes{parallel}, pods: append(parse("1:1 5:1"), foreign("web-0")), want: "delete web-5",
		},
		"chosen, name taken: the missing pod spends the budget": {
			replicas: 2, set: changes{parallel}, pods: append(parse("1:1m"), foreign("web-0")),
		},
		"failed: an evicted pod is deleted, to come back with its name": {
			replicas: 1, pods: parse("0:1!"), want: "delete web-0",
		},
		"failed, ordered: the turn of the pod comes when those before it are available": {
			replicas: 2, pods: parse("0:1- 1:1!"),
		},
		"being deleted: its pods are those of the garbage collector": {
			replicas: 2,
			set: changes{func(s *v1beta1.StatefulSet) {
				s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: podtest.Noon()}, []string{"a/b"}
			}},
		},
		"released: the selector no longer matches the pod; its name is taken until it is gone": {
			replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Label("app", "other"))}, want: "patch web-0",
		},
		"misnamed: a pod of another name is released": {replicas: 1, pods: parse("0:1 x:1"), want: "patch web-x"},
		"adopted: a matching pod without a controller is adopted, and not created again": {
			replicas: 1, pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Label("orphan", ""))}, want: "patch web-0",
		},
		"not adopted: a pod that the selector does not match is another's": {
			pods: []*corev1.Pod{pod("web-0", "web:1", podtest.Label("orphan", ""), podtest.Label("app", "other"))},
		},
		"renamed: the label of the name is repaired": {
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.Label("statefulset.kubernetes.io/pod-name", "web-7"))},
			want:     "patch web-0",
		},
		"chosen: from the last, as many as may be unavailable": {
			replicas: 6,
			set:      changes{parallel, maxUnavailable(3)},
			pods:     parse("0:1m 1:1m 2:1m 3:1 4:1 5:1m"),
			want:     "delete web-5, delete web-2, delete web-1",
		},
		"chosen, held: the paused set deletes no chosen pod": {replicas: 1, set: changes{paused}, pods: parse("0:1m")},
	})
}

// foreign is a pod that the set neither controls nor adopts.
func foreign(name string) *corev1.Pod {
	return pod(name, "web:1", podtest.Label("orphan", ""), podtest.Label("app", "other"))
}

// Which ordinals are wanted.
func TestPlanOrdinals(t *testing.T) {
	create := func(pods ...string) string {
		return "create " + strings.Join(pods, " of web:1, create ") + " of web:1"
	}
	starts := Options{StartOrdinal: true}
	orphans := func(text string) []*corev1.Pod {
		pods := parse(text)
		for _, pod := range pods {
			pod.Labels["orphan"] = ""
		}
		return pods
	}
	checkPlans(t, map[string]planCase{
		"the gate is off: a new set begins at 0": {
			replicas: 2, set: changes{parallel, start(5)}, want: create("web-0", "web-1"),
		},
		"the gate is off, pods from the start: they would be deleted with their claims, and are left as they are": {
			replicas: 3, set: changes{parallel, start(5), withClaims(keeps, deletes)}, pods: parse("5:1 6:1 7:1"),
		},
		"the gate is off, orphans from the start: they would be adopted to be deleted": {
			replicas: 3, set: changes{parallel, start(5), withClaims(keeps, deletes)}, pods: orphans("5:1 6:1 7:1"),
		},
		"the gate is off, pods from 0: the set has always begun at 0, and scales in": {
			replicas: 2, set: changes{parallel, start(1)}, pods: parse("0:1 1:1 2:1"), want: "delete web-2",
		},
		"the gate is off, pods from 0, orphans: they are not adopted, and keep nothing else from going on": {
			replicas: 2,
			set:      changes{parallel, start(5)},
			pods:     append(parse("0:1"), orphans("5:1 6:1")...),
			want:     create("web-1"),
		},
		"the gate is on: orphans from the start are adopted": {
			options:  starts,
			replicas: 2,
			set:      changes{parallel, start(5)},
			pods:     orphans("5:1 6:1"),
			want:     "patch web-5, patch web-6",
		},
		"a range: 0 and 2 to 5 are left out": {
			replicas: 3, set: changes{parallel, reserve(0, "2-5")}, want: create("web-1", "web-6", "web-7"),
		},
		"one more reserved: the pod beyond the end is created first": {
			replicas: 4, set: changes{parallel, reserve(1, 3)}, pods: parse("0:1 2:1 3:1 4:1"), want: create("web-5"),
		},
		"then: the pod of the reserved ordinal goes": {
			replicas: 4, set: changes{parallel, reserve(1, 3)}, pods: parse("0:1 2:1 3:1 4:1 5:1"), want: "delete web-3",
		},
		"start below zero: 0 counts": {
			options: starts, replicas: 1, set: changes{parallel, start(-3)}, want: create("web-0"),
		},
		"start and reserved: 2, 5, 6, 7": {
			options:  starts,
			replicas: 4,
			set:      changes{parallel, start(1), reserve(1, 3, 4)},
			want:     create("web-2", "web-5", "web-6", "web-7"),
		},
		"start, partition: the first three wanted ordinals stay old, whatever their numbers": {
			options:  starts,
			replicas: 5,
			set:      changes{parallel, start(2), withImage("web:2"), partition(3)},
			pods:     parse("2:1 4:1 5:2 6:2"),
			want:     create("web-3"),
		},
	})
}

// A set asks for so many pods and claims as one pass can hold.
func TestInvalidNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		why      string
		replicas int32
		claims   int
		valid    bool
	}{
		"many pods":             {"a pass holds their names", 100_000, 0, true},
		"too many pods":         {"a typing error must not take the memory of the manager", 100_001, 0, false},
		"many claims":           {"pods and claims count together", 25_000, 3, true},
		"too many claims":       {"pods and claims count together", 25_001, 3, false},
		"the largest number":    {"nothing overflows", math.MaxInt32, 1, false},
		"a negative number":     {"there are no such pods", -1, 0, false},
		"very many claims each": {"one pod may have them", 1, 90_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			set := observe(t, c.replicas).set
			set.Spec.VolumeClaimTemplates = make([]corev1.PersistentVolumeClaim, c.claims)
			set.Default()
			if unusable, _ := invalid(set); (unusable == nil) != c.valid {
				t.Errorf("%s: %v", c.why, unusable)
			}
		})
	}
}
