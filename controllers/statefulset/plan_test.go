package statefulset

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

type changes = []func(*v1beta1.StatefulSet)

// planCase is a set, what it owns, and the writes of its next pass.
type planCase struct {
	why      string
	options  Options
	replicas int32
	set      changes
	pods     []*corev1.Pod
	claims   []*corev1.PersistentVolumeClaim
	want     []string
	// after is when the next pass is due although nothing changes; zero for never.
	after time.Duration
}

func checkPlans(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, c.replicas, c.set...)
			c.options.Now, c.options.Live = o.options.Now, o.server
			o.options = c.options
			o.pods(c.pods...)
			for _, claim := range c.claims {
				o.put(claim, types.UID("uid-"+claim.Name))
			}
			got, after := o.writes()
			if c.after != 0 && after != c.after {
				t.Errorf("%s: the next pass is due after %s, want %s", c.why, after, c.after)
			}
			if diff := cmp.Diff(append([]string{}, c.want...), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func pod(name, image string, changes ...podtest.Change) *corev1.Pod {
	return podtest.New(name, image, changes...)
}

// How many pods are created and deleted, and which.
func TestPlanScale(t *testing.T) {
	notReady := podtest.Change(podtest.NotReady)
	checkPlans(t, map[string]planCase{
		"converged":    {why: "nothing is left to do", replicas: 2, pods: several("web:1", 0, 1)},
		"ordered, new": {why: "the first pod comes first", replicas: 3, want: []string{"create web-0 of web:1"}},
		"ordered, not ready": {
			why:      "no pod is created before those before it are ready",
			replicas: 3,
			pods:     []*corev1.Pod{pod("web-0", "web:1", notReady)},
		},
		"ordered, ready": {
			why: "the second follows the first", replicas: 3, pods: several("web:1", 0), want: []string{"create web-1 of web:1"},
		},
		"ordered, minReady": {
			why:      "the pod is not available for another 59 seconds",
			replicas: 3,
			set:      changes{minReady(60)},
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.ReadyFor(time.Second))},
			after:    59 * time.Second,
		},
		"ordered, terminating": {
			why:      "the name is taken until the pod is gone",
			replicas: 2,
			pods:     []*corev1.Pod{pod("web-0", "web:1", terminating(0))},
		},
		"parallel": {
			why:      "all are created at once, whatever minReadySeconds",
			replicas: 3,
			set:      changes{parallel, minReady(60)},
			want:     []string{"create web-0 of web:1", "create web-1 of web:1", "create web-2 of web:1"},
		},
		"parallel, limited": {
			why:      "two may be unavailable",
			replicas: 5,
			set:      changes{parallel, scalesWith(2)},
			want:     []string{"create web-0 of web:1", "create web-1 of web:1"},
		},
		"parallel, one ready": {
			why:      "a third pod follows",
			replicas: 5,
			set:      changes{parallel, scalesWith(2)},
			pods:     []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", notReady)},
			want:     []string{"create web-2 of web:1"},
		},
		"parallel, 3 to 10": {
			why:      "creation stops at 5 pods",
			replicas: 10,
			set:      changes{parallel, scalesWith(2)},
			pods:     several("web:1", 0, 1, 2),
			want:     []string{"create web-3 of web:1", "create web-4 of web:1"},
		},
		"parallel, canary": {
			why:      "a broken canary at the top does not hold back a drained pod",
			replicas: 4,
			set:      changes{parallel, inPlace, withImage("web:2"), maxUnavailable(2), scalesWith(2)},
			pods:     []*corev1.Pod{pod("web-1", "web:1"), pod("web-2", "web:2", notReady), pod("web-3", "web:2", notReady)},
			want:     []string{"create web-0 of web:2"},
		},
		"parallel, later": {
			why:      "the budget is spent from the first ordinal on",
			replicas: 3,
			set:      changes{parallel, scalesWith(1)},
			pods:     []*corev1.Pod{pod("web-1", "web:1"), pod("web-2", "web:1", notReady)},
			want:     []string{"create web-0 of web:1"},
		},
		"parallel, percentage": {
			why:      "20% of 3 is at least 1",
			replicas: 3,
			set:      changes{parallel, scalesWith("20%")},
			want:     []string{"create web-0 of web:1"},
		},
		"ordered, down": {
			why: "the last pod goes first, alone", replicas: 1, pods: several("web:1", 0, 1, 2), want: []string{"delete web-2"},
		},
		"down, last unready": {
			why:      "the only unready pod goes",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1"), pod("web-2", "web:1", notReady)},
			want:     []string{"delete web-2"},
		},
		"down, two unready": {
			why:      "the first of them may be what the last one needs",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", notReady), pod("web-2", "web:1", notReady)},
		},
		"down, first unready": {
			why:      "no pod goes before all wanted pods are available",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1", notReady), pod("web-1", "web:1"), pod("web-2", "web:1")},
		},
		"down, parallel": {
			why:      "all go at once",
			replicas: 1,
			set:      changes{parallel},
			pods:     several("web:1", 0, 1, 2),
			want:     []string{"delete web-2", "delete web-1"},
		},
		"down, name is taken": {
			why:      "a pod of another owner has a wanted name; what is too many goes",
			replicas: 2,
			set:      changes{parallel},
			pods:     append(several("web:1", 1, 5), foreign("web-0")),
			want:     []string{"delete web-5"},
		},
		"down, ordered, taken": {
			why:      "no pod goes before all wanted pods are available",
			replicas: 2,
			pods:     append(several("web:1", 1, 5), foreign("web-0")),
		},
		"chosen, name taken": {
			why:      "the missing pod spends the budget",
			replicas: 2,
			set:      changes{parallel},
			pods:     append(marked("web:1", 1), foreign("web-0")),
		},
		"chosen, budget of 2": {
			why:      "one more may be unavailable",
			replicas: 2,
			set:      changes{parallel, maxUnavailable(2)},
			pods:     append(marked("web:1", 1), foreign("web-0")),
			want:     []string{"delete web-1"},
		},
		"failed": {
			why:      "an evicted pod is deleted, to come back with its name",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.Phase(corev1.PodFailed))},
			want:     []string{"delete web-0"},
		},
		"failed, ordered": {
			why:      "the turn of the pod comes when those before it are available",
			replicas: 2,
			pods:     []*corev1.Pod{pod("web-0", "web:1", notReady), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed))},
		},
		"failed, two": {
			why:      "the first one is replaced first",
			replicas: 3,
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed)),
				pod("web-2", "web:1", podtest.Phase(corev1.PodSucceeded)),
			},
			want: []string{"delete web-1"},
		},
		"failed, missing": {
			why:      "a missing pod before it comes first",
			replicas: 2,
			pods:     []*corev1.Pod{pod("web-1", "web:1", podtest.Phase(corev1.PodFailed))},
			want:     []string{"create web-0 of web:1"},
		},
		"failed, not wanted": {
			why:      "the last pod goes first",
			replicas: 1,
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed)), pod("web-2", "web:1"),
			},
			want: []string{"delete web-2"},
		},
		"failed, last": {
			why:      "it never runs again, and nothing is left to wait for",
			replicas: 1,
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", notReady), pod("web-2", "web:1", podtest.Phase(corev1.PodFailed)),
			},
			want: []string{"delete web-2"},
		},
		"failed, blocked": {
			why:      "no pod goes before all wanted pods are available",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1", notReady), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed))},
		},
		"failed, budget of 1": {
			why:      "the pod is replaced all the same",
			replicas: 2,
			set:      changes{parallel, scalesWith(1)},
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.Phase(corev1.PodFailed)), pod("web-1", "web:1")},
			want:     []string{"delete web-0"},
		},
		"being deleted": {
			why:      "its pods are those of the garbage collector",
			replicas: 2,
			set: changes{func(s *v1beta1.StatefulSet) {
				s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: podtest.Noon()}, []string{"a/b"}
			}},
		},
		"released": {
			why:      "the selector no longer matches the pod; its name is taken until it is gone",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.Label("app", "other"))},
			want:     []string{"patch web-0"},
		},
		"misnamed": {
			why:      "a pod of another name is released",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1"), pod("web-x", "web:1")},
			want:     []string{"patch web-x"},
		},
		"adopted": {
			why:      "a matching pod without a controller is adopted, and not created again",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.Label("orphan", ""))},
			want:     []string{"patch web-0"},
		},
		"not adopted": {
			why:      "a pod that the selector does not match is another's",
			replicas: 0,
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.Label("orphan", ""), podtest.Label("app", "other"))},
		},
		"renamed": {
			why:      "the label of the name is repaired",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.Label("statefulset.kubernetes.io/pod-name", "web-7"))},
			want:     []string{"patch web-0"},
		},
		"no replicas": {
			why: "all go", replicas: 0, set: changes{parallel}, pods: several("web:1", 0), want: []string{"delete web-0"},
		},
		"chosen": {
			why:      "from the last, as many as may be unavailable",
			replicas: 6,
			set:      changes{parallel, maxUnavailable(3)},
			pods:     slices.Concat(marked("web:1", 0, 1, 2), several("web:1", 3, 4), marked("web:1", 5)),
			want:     []string{"delete web-5", "delete web-2", "delete web-1"},
		},
		"chosen, held": {
			why: "the paused set deletes no chosen pod", replicas: 1, set: changes{paused}, pods: marked("web:1", 0),
		},
	})
}

// foreign is a pod that the set neither controls nor adopts.
func foreign(name string) *corev1.Pod {
	return pod(name, "web:1", podtest.Label("orphan", ""), podtest.Label("app", "other"))
}

func marked(image string, ordinals ...int) []*corev1.Pod {
	pods := several(image, ordinals...)
	for _, pod := range pods {
		pod.Labels[kruise.SpecifiedDeleteKey] = ""
	}
	return pods
}

// Which ordinals are wanted.
func TestPlanOrdinals(t *testing.T) {
	create := func(pods ...string) []string {
		var all []string
		for _, pod := range pods {
			all = append(all, "create "+pod+" of web:1")
		}
		return all
	}
	starts := Options{StartOrdinal: true}
	orphans := func(ordinals ...int) []*corev1.Pod {
		pods := several("web:1", ordinals...)
		for _, pod := range pods {
			pod.Labels["orphan"] = ""
		}
		return pods
	}
	checkPlans(t, map[string]planCase{
		"the gate is off": {
			why:      "a new set begins at 0",
			replicas: 2,
			set:      changes{parallel, start(5)},
			want:     create("web-0", "web-1"),
		},
		"the gate is off, pods from the start": {
			why:      "they would be deleted with their claims, and are left as they are",
			replicas: 3,
			set:      changes{parallel, start(5), withClaims(keeps, deletes)},
			pods:     several("web:1", 5, 6, 7),
		},
		"the gate is off, orphans from the start": {
			why:      "they would be adopted to be deleted",
			replicas: 3,
			set:      changes{parallel, start(5), withClaims(keeps, deletes)},
			pods:     orphans(5, 6, 7),
		},
		"the gate is off, pods from 0": {
			why:      "the set has always begun at 0, and scales in",
			replicas: 2,
			set:      changes{parallel, start(1)},
			pods:     several("web:1", 0, 1, 2),
			want:     []string{"delete web-2"},
		},
		"the gate is off, pods from 0, orphans": {
			why:      "they are not adopted, and keep nothing else from going on",
			replicas: 2,
			set:      changes{parallel, start(5)},
			pods:     append(several("web:1", 0), orphans(5, 6)...),
			want:     create("web-1"),
		},
		"the gate is on": {
			why:      "orphans from the start are adopted",
			options:  starts,
			replicas: 2,
			set:      changes{parallel, start(5)},
			pods:     orphans(5, 6),
			want:     []string{"patch web-5", "patch web-6"},
		},
		"reserved": {
			why:      "the reserved ordinal is left out",
			replicas: 4,
			set:      changes{parallel, reserve(1)},
			want:     create("web-0", "web-2", "web-3", "web-4"),
		},
		"a range": {
			why:      "0 and 2 to 5 are left out",
			replicas: 3,
			set:      changes{parallel, reserve(0, "2-5")},
			want:     create("web-1", "web-6", "web-7"),
		},
		"leading zeros": {
			why:      "0003-005 is 3 to 5",
			replicas: 4,
			set:      changes{parallel, reserve("0003-005")},
			want:     create("web-0", "web-1", "web-2", "web-6"),
		},
		"a range without bounds": {
			why:      "no range is expanded",
			replicas: 1,
			set:      changes{parallel, reserve("0-2000000000")},
			want:     create("web-2000000001"),
		},
		"one more reserved": {
			why:      "the pod beyond the end is created first",
			replicas: 4,
			set:      changes{parallel, reserve(1, 3)},
			pods:     several("web:1", 0, 2, 3, 4),
			want:     create("web-5"),
		},
		"then": {
			why:      "the pod of the reserved ordinal goes",
			replicas: 4,
			set:      changes{parallel, reserve(1, 3)},
			pods:     several("web:1", 0, 2, 3, 4, 5),
			want:     []string{"delete web-3"},
		},
		"reserved, one fewer": {
			why:      "the pod only goes",
			replicas: 3,
			set:      changes{parallel, reserve(1, 3)},
			pods:     several("web:1", 0, 2, 3, 4),
			want:     []string{"delete web-3"},
		},
		"start": {
			why:      "2, 3, 4",
			replicas: 3,
			options:  starts,
			set:      changes{parallel, start(2)},
			want:     create("web-2", "web-3", "web-4"),
		},
		"start without the gate": {
			why: "0, 1", replicas: 2, set: changes{parallel, start(2)}, want: create("web-0", "web-1"),
		},
		"start below zero": {
			why: "0 counts", replicas: 1, options: starts, set: changes{parallel, start(-3)}, want: create("web-0"),
		},
		"start and reserved": {
			why:      "2, 5, 6, 7",
			replicas: 4,
			options:  starts,
			set:      changes{parallel, start(1), reserve(1, 3, 4)},
			want:     create("web-2", "web-5", "web-6", "web-7"),
		},
		"start is raised": {
			why:      "what is missing comes first",
			replicas: 2,
			options:  starts,
			set:      changes{parallel, start(1)},
			pods:     several("web:1", 0, 1),
			want:     create("web-2"),
		},
		"start was raised": {
			why:      "the pod before the start goes",
			replicas: 2,
			options:  starts,
			set:      changes{parallel, start(1)},
			pods:     several("web:1", 0, 1, 2),
			want:     []string{"delete web-0"},
		},
		"start, partition": {
			why:      "the first three wanted ordinals stay old, whatever their numbers",
			replicas: 5,
			options:  starts,
			set:      changes{parallel, start(2), withImage("web:2"), partition(3)},
			pods:     slices.Concat(several("web:1", 2, 4), several("web:2", 5, 6)),
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
