package statefulset

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

// Which pods are updated, and how.
func TestPlanUpdates(t *testing.T) {
	two := withImage("web:2")
	only := rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.PodUpdatePolicy = v1beta1.InPlaceOnlyPodUpdateStrategyType
	})
	grace := rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 60}
	})
	env := func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}
	weigh := rolling(func(u *v1beta1.RollingUpdateStatefulSetStrategy) {
		u.UnorderedUpdate = &v1beta1.UnorderedUpdateStrategy{PriorityStrategy: &kruise.UpdatePriorityStrategy{
			WeightPriority: []kruise.UpdatePriorityWeightTerm{{
				Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"first": "yes"}},
			}},
		}}
	})
	checkPlans(t, map[string]planCase{
		"partition of all": {
			why: "no pod is updated", replicas: 3, set: changes{two, partition(3)}, pods: several("web:1", 0, 1, 2),
		},
		"partition of two": {
			why:      "the last is updated",
			replicas: 3,
			set:      changes{two, partition(2)},
			pods:     several("web:1", 0, 1, 2),
			want:     []string{"delete web-2"},
		},
		"partition, gone": {
			why:      "each comes back at its own revision",
			replicas: 3,
			set:      changes{two, parallel, partition(2)},
			pods:     several("web:1", 1),
			want:     []string{"create web-0 of web:1", "create web-2 of web:2"},
		},
		"partition, reserved": {
			why:      "the partition counts pods, not ordinals",
			replicas: 3,
			set:      changes{two, parallel, reserve(1, 3), partition(2), maxUnavailable(3)},
			pods:     several("web:1", 0, 2, 4),
			want:     []string{"delete web-4"},
		},
		"burst of 6": {
			why:      "5 and 4 go first",
			replicas: 6,
			set:      changes{two, parallel, partition(3), maxUnavailable(2)},
			pods:     several("web:1", 0, 1, 2, 3, 4, 5),
			want:     []string{"delete web-5", "delete web-4"},
		},
		"burst, 4 is ready": {
			why:      "3 goes while 5 is not ready",
			replicas: 6,
			set:      changes{two, parallel, partition(3), maxUnavailable(2)},
			pods: slices.Concat(several("web:1", 0, 1, 2, 3), several("web:2", 4), []*corev1.Pod{
				pod("web-5", "web:2", podtest.NotReady),
			}),
			want: []string{"delete web-3"},
		},
		"one terminating": {
			why:      "one more may be unavailable",
			replicas: 6,
			set:      changes{two, parallel, maxUnavailable(2)},
			pods:     append(several("web:1", 1, 2, 3, 4, 5), pod("web-0", "web:1", terminating(0))),
			want:     []string{"delete web-5"},
		},
		"two terminating": {
			why:      "no more may be unavailable",
			replicas: 6,
			set:      changes{two, parallel, maxUnavailable(2)},
			pods: append(several("web:1", 1, 3, 4, 5), pod("web-0", "web:1", terminating(0)),
				pod("web-2", "web:1", terminating(0))),
		},
		"percentage": {
			why:      "20% of 3 is at least 1",
			replicas: 3,
			set:      changes{two, parallel, maxUnavailable("20%")},
			pods:     several("web:1", 0, 1, 2),
			want:     []string{"delete web-2"},
		},
		"more than 1, ordered": {
			why:      "1 counts with OrderedReady",
			replicas: 3,
			set:      changes{two, maxUnavailable(3)},
			pods:     several("web:1", 0, 1, 2),
			want:     []string{"delete web-2"},
		},
		"in place": {
			why:      "the last changes first",
			replicas: 2,
			set:      changes{two, inPlace},
			pods:     several("web:1", 0, 1),
			want:     []string{"take web-1 out of traffic", "update web-1 to web:2"},
		},
		"in place, minReady": {
			why:      "the updated pod is not available yet",
			replicas: 2,
			set:      changes{two, parallel, inPlace, minReady(60)},
			pods:     []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:2", podtest.ReadyFor(30*time.Second))},
			after:    30 * time.Second,
		},
		"in place, not ready": {
			why:      "the next waits",
			replicas: 2,
			set:      changes{two, inPlace},
			pods:     []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:2", podtest.NotReady)},
		},
		"in place, grace": {
			why:      "the pod leaves traffic, and its containers change later",
			replicas: 1,
			set:      changes{two, inPlace, grace},
			pods:     several("web:1", 0),
			want:     []string{"take web-0 out of traffic", "update web-0 to web:1"},
		},
		"not in place": {
			why:      "no running container gets another environment",
			replicas: 1,
			set:      changes{env, inPlace},
			pods:     several("web:1", 0),
			want:     []string{"delete web-0"},
		},
		"not in place, only": {
			why: "the pod is not recreated", replicas: 1, set: changes{env, only}, pods: several("web:1", 0),
		},
		"OnDelete": {
			why: "no pod is updated", replicas: 2, set: changes{two, onDelete}, pods: several("web:1", 0, 1),
		},
		"OnDelete, gone": {
			why:      "the deleted pod comes back updated",
			replicas: 2,
			set:      changes{two, onDelete},
			pods:     several("web:1", 0),
			want:     []string{"create web-1 of web:2"},
		},
		"OnDelete, chosen": {
			why: "the label is ignored", replicas: 1, set: changes{two, onDelete}, pods: marked("web:1", 0),
		},
		"paused": {
			why: "no pod is updated", replicas: 2, set: changes{two, paused}, pods: several("web:1", 0, 1),
		},
		"paused, scaled": {
			why:      "the set is scaled",
			replicas: 3,
			set:      changes{two, paused},
			pods:     several("web:1", 0, 1),
			want:     []string{"create web-2 of web:2"},
		},
		"chosen": {
			why:      "the chosen pod is deleted, whatever the partition",
			replicas: 4,
			set:      changes{two, parallel, partition(2)},
			pods:     slices.Concat(several("web:1", 0), marked("web:1", 1), several("web:2", 2, 3)),
			want:     []string{"delete web-1"},
		},
		"chosen, gone": {
			why:      "the pod below the partition comes back old",
			replicas: 4,
			set:      changes{two, parallel, partition(2)},
			pods:     slices.Concat(several("web:1", 0), several("web:2", 2, 3)),
			want:     []string{"create web-1 of web:1"},
		},
		"unordered": {
			why:      "6 of 10 stay, whichever",
			replicas: 10,
			set:      changes{two, parallel, unordered, partition(6), maxUnavailable(10)},
			pods:     slices.Concat(several("web:1", 0, 1, 2, 3, 4, 5, 8, 9), several("web:2", 6, 7)),
			want:     []string{"delete web-9", "delete web-8"},
		},
		"unordered, weighted": {
			why:      "the weight decides",
			replicas: 3,
			set:      changes{two, parallel, weigh},
			pods: []*corev1.Pod{
				pod("web-0", "web:1", podtest.Label("first", "yes")), pod("web-1", "web:1"), pod("web-2", "web:1"),
			},
			want: []string{"delete web-0"},
		},
		"unordered, gone": {
			why:      "enough others are old, so that the pod comes back updated",
			replicas: 3,
			set:      changes{two, parallel, unordered, partition(2)},
			pods:     several("web:1", 1, 2),
			want:     []string{"create web-0 of web:2"},
		},
		"broken, ordered": {
			why:      "no update begins before all pods are available",
			replicas: 2,
			set:      changes{two},
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.NotReady), pod("web-1", "web:1")},
		},
		"broken first": {
			why:      "the broken pod is updated",
			replicas: 2,
			options:  Options{UnavailableFirst: true},
			set:      changes{two},
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.NotReady), pod("web-1", "web:1")},
			want:     []string{"delete web-0"},
		},
		"maxUnavailable absurd": {
			why:      "the default counts",
			replicas: 3,
			set:      changes{two, parallel, maxUnavailable("x")},
			pods:     several("web:1", 0, 1, 2),
			want:     []string{"delete web-2"},
		},
	})
}

// Which lifecycle states pods move to, and what hooks hold.
func TestPlanHooks(t *testing.T) {
	two := withImage("web:2")
	preDelete, preNormal := hooks(kruise.Lifecycle{PreDelete: byLabel()}), hooks(kruise.Lifecycle{PreNormal: byLabel()})
	updates := hooks(kruise.Lifecycle{InPlaceUpdate: byLabel()})
	state := podtest.State
	checkPlans(t, map[string]planCase{
		"held update": {
			why:      "the containers stay",
			replicas: 1,
			set:      changes{two, inPlace, updates},
			pods:     []*corev1.Pod{pod("web-0", "web:1", held)},
			want:     []string{"move web-0 to PreparingUpdate"},
		},
		"update goes on": {
			why:      "the hook is gone",
			replicas: 1,
			set:      changes{two, inPlace, updates},
			pods:     []*corev1.Pod{pod("web-0", "web:1", state(kruise.LifecycleStatePreparingUpdate))},
			want:     []string{"take web-0 out of traffic", "update web-0 to web:2"},
		},
		"updated": {
			why:      "the hook is not restored",
			replicas: 1,
			set:      changes{two, inPlace, updates},
			pods:     []*corev1.Pod{pod("web-0", "web:2", state(kruise.LifecycleStateUpdating))},
			want:     []string{"move web-0 to Updated"},
		},
		"restored": {
			why:      "the hook is restored",
			replicas: 1,
			set:      changes{two, inPlace, updates},
			pods:     []*corev1.Pod{pod("web-0", "web:2", held, state(kruise.LifecycleStateUpdated))},
			want:     []string{"move web-0 to Normal"},
		},
		"rolled back": {
			why:      "no container restarts",
			replicas: 1,
			set:      changes{inPlace, updates},
			pods:     []*corev1.Pod{pod("web-0", "web:1", held, state(kruise.LifecycleStatePreparingUpdate))},
			want:     []string{"move web-0 to Normal"},
		},
		"held recreation": {
			why:      "the pod stays until its hook is gone",
			replicas: 1,
			set:      changes{two, preDelete},
			pods:     []*corev1.Pod{pod("web-0", "web:1", held)},
			want:     []string{"move web-0 to PreparingDelete"},
		},
		"recreation goes on": {
			why:      "the hook is gone",
			replicas: 1,
			set:      changes{two, preDelete},
			pods:     []*corev1.Pod{pod("web-0", "web:1", state(kruise.LifecycleStatePreparingDelete))},
			want:     []string{"delete web-0"},
		},
		"held scale-in": {
			why:      "the pod stays until its hook is gone",
			replicas: 1,
			set:      changes{preDelete},
			pods:     []*corev1.Pod{pod("web-0", "web:1"), pod("web-1", "web:1", held)},
			want:     []string{"move web-1 to PreparingDelete"},
		},
		"one at a time": {
			why:      "no second pod is held while the first one is",
			replicas: 1,
			set:      changes{preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", held),
				pod("web-2", "web:1", held, state(kruise.LifecycleStatePreparingDelete)),
			},
		},
		"held, and updated": {
			why:      "a hook that takes hours stops no rollout",
			replicas: 1,
			set:      changes{two, preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", held, state(kruise.LifecycleStatePreparingDelete)),
			},
			want: []string{"delete web-0"},
		},
		"wanted again": {
			why:      "the deletion is taken back",
			replicas: 2,
			set:      changes{preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", held, state(kruise.LifecycleStatePreparingDelete)),
			},
			want: []string{"move web-1 to PreparingNormal"},
		},
		"new, without a hook": {
			why: "the hook has nothing to set", replicas: 1, set: changes{preNormal}, want: []string{"create web-0 of web:1"},
		},
		"new, held": {
			why:      "the next pod waits for the hook",
			replicas: 2,
			set:      changes{preNormal},
			pods:     []*corev1.Pod{pod("web-0", "web:1", state(kruise.LifecycleStatePreparingNormal))},
		},
		"new, normal": {
			why:      "the pod has what the hook asks for",
			replicas: 1,
			set:      changes{preNormal},
			pods:     []*corev1.Pod{pod("web-0", "web:1", held, state(kruise.LifecycleStatePreparingNormal))},
			want:     []string{"move web-0 to Normal"},
		},
		"failed, held": {
			why:      "the owner of the hook sees that the evicted pod is to be deleted",
			replicas: 1,
			set:      changes{preDelete},
			pods:     []*corev1.Pod{pod("web-0", "web:1", held, podtest.Phase(corev1.PodFailed))},
			want:     []string{"move web-0 to PreparingDelete"},
		},
		"finished, parallel": {
			why:      "each pod is held on its own",
			replicas: 2,
			set:      changes{parallel, preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1", held, podtest.Phase(corev1.PodSucceeded)), pod("web-1", "web:1", held),
			},
			want: []string{"move web-0 to PreparingDelete"},
		},
		"failed, waits": {
			why:      "the hook holds the evicted pod",
			replicas: 1,
			set:      changes{preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1", held, podtest.Phase(corev1.PodFailed), state(kruise.LifecycleStatePreparingDelete)),
			},
		},
		"failed, released": {
			why:      "the hook is gone",
			replicas: 1,
			set:      changes{preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1", podtest.Phase(corev1.PodFailed), state(kruise.LifecycleStatePreparingDelete)),
			},
			want: []string{"delete web-0"},
		},
	})
}
