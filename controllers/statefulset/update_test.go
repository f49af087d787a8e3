package statefulset

import (
	"testing"

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
		"partition of two: the last is updated": {
			replicas: 3, set: changes{two, partition(2)}, pods: parse("0:1 1:1 2:1"), want: "delete web-2",
		},
		"partition, gone: each comes back at its own revision": {
			replicas: 3,
			set:      changes{two, parallel, partition(2)},
			pods:     parse("1:1"),
			want:     "create web-0 of web:1, create web-2 of web:2",
		},
		"partition, reserved: the partition counts pods, not ordinals": {
			replicas: 3,
			set:      changes{two, parallel, reserve(1, 3), partition(2), maxUnavailable(3)},
			pods:     parse("0:1 2:1 4:1"),
			want:     "delete web-4",
		},
		"percentage: 20% of 3 is at least 1": {
			replicas: 3, set: changes{two, parallel, maxUnavailable("20%")}, pods: parse("0:1 1:1 2:1"), want: "delete web-2",
		},
		"more than 1, ordered: 1 counts with OrderedReady": {
			replicas: 3, set: changes{two, maxUnavailable(3)}, pods: parse("0:1 1:1 2:1"), want: "delete web-2",
		},
		"in place: the last changes first": {
			replicas: 2,
			set:      changes{two, inPlace},
			pods:     parse("0:1 1:1"),
			want:     "take web-1 out of traffic, update web-1 to web:2",
		},
		"in place, grace: the pod leaves traffic, and its containers change later": {
			replicas: 1,
			set:      changes{two, inPlace, grace},
			pods:     parse("0:1"),
			want:     "take web-0 out of traffic, update web-0 to web:1",
		},
		"not in place: no running container gets another environment": {
			replicas: 1, set: changes{env, inPlace}, pods: parse("0:1"), want: "delete web-0",
		},
		"not in place, only: the pod is not recreated": {replicas: 1, set: changes{env, only}, pods: parse("0:1")},
		"OnDelete: no pod is updated":                  {replicas: 2, set: changes{two, onDelete}, pods: parse("0:1 1:1")},
		"OnDelete, gone: the deleted pod comes back updated": {
			replicas: 2, set: changes{two, onDelete}, pods: parse("0:1"), want: "create web-1 of web:2",
		},
		"OnDelete, chosen: the label is ignored": {replicas: 1, set: changes{two, onDelete}, pods: parse("0:1m")},
		"paused: no pod is updated":              {replicas: 2, set: changes{two, paused}, pods: parse("0:1 1:1")},
		"paused, scaled: the set is scaled": {
			replicas: 3, set: changes{two, paused}, pods: parse("0:1 1:1"), want: "create web-2 of web:2",
		},
		"chosen: the chosen pod is deleted, whatever the partition": {
			replicas: 4, set: changes{two, parallel, partition(2)}, pods: parse("0:1 1:1m 2:2 3:2"), want: "delete web-1",
		},
		"unordered: 6 of 10 stay": {
			replicas: 10,
			set:      changes{two, parallel, unordered, partition(6), maxUnavailable(10)},
			pods:     parse("0:1 1:1 2:1 3:1 4:1 5:1 8:1 9:1 6:2 7:2"),
			want:     "delete web-9, delete web-8",
		},
		"unordered, weighted: the weight decides": {
			replicas: 3,
			set:      changes{two, parallel, weigh},
			pods: []*corev1.Pod{
				pod("web-0", "web:1", podtest.Label("first", "yes")), pod("web-1", "web:1"), pod("web-2", "web:1"),
			},
			want: "delete web-0",
		},
		"unordered, gone: enough others are old, so that the pod comes back updated": {
			replicas: 3,
			set:      changes{two, parallel, unordered, partition(2)},
			pods:     parse("1:1 2:1"),
			want:     "create web-0 of web:2",
		},
		"broken, ordered: no update begins before all pods are available": {
			replicas: 2, set: changes{two}, pods: parse("0:1- 1:1"),
		},
		"broken first: the broken pod is updated": {
			options:  Options{UnavailableFirst: true},
			replicas: 2,
			set:      changes{two},
			pods:     parse("0:1- 1:1"),
			want:     "delete web-0",
		},
		"maxUnavailable absurd: the default counts": {
			replicas: 3, set: changes{two, parallel, maxUnavailable("x")}, pods: parse("0:1 1:1 2:1"), want: "delete web-2",
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
		"held update: the containers stay": {
			replicas: 1, set: changes{two, inPlace, updates}, pods: parse("0:1h"), want: "move web-0 to PreparingUpdate",
		},
		"held recreation: the pod stays until its hook is gone": {
			replicas: 1, set: changes{two, preDelete}, pods: parse("0:1h"), want: "move web-0 to PreparingDelete",
		},
		"held scale-in: the pod stays until its hook is gone": {
			replicas: 1, set: changes{preDelete}, pods: parse("0:1 1:1h"), want: "move web-1 to PreparingDelete",
		},
		"one at a time: no second pod is held while the first one is": {
			replicas: 1,
			set:      changes{preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", held),
				pod("web-2", "web:1", held, state(kruise.LifecycleStatePreparingDelete)),
			},
		},
		"held, and updated: a hook that takes hours stops no rollout": {
			replicas: 1,
			set:      changes{two, preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", held, state(kruise.LifecycleStatePreparingDelete)),
			},
			want: "delete web-0",
		},
		"wanted again: the deletion is taken back": {
			replicas: 2,
			set:      changes{preDelete},
			pods: []*corev1.Pod{
				pod("web-0", "web:1"), pod("web-1", "web:1", held, state(kruise.LifecycleStatePreparingDelete)),
			},
			want: "move web-1 to PreparingNormal",
		},
		"new, without a hook: the hook has nothing to set": {
			replicas: 1, set: changes{preNormal}, want: "create web-0 of web:1",
		},
		"new, held: the next pod waits for the hook": {
			replicas: 2,
			set:      changes{preNormal},
			pods:     []*corev1.Pod{pod("web-0", "web:1", state(kruise.LifecycleStatePreparingNormal))},
		},
		"failed, held: the owner of the hook sees that the evicted pod is to be deleted": {
			replicas: 1, set: changes{preDelete}, pods: parse("0:1h!"), want: "move web-0 to PreparingDelete",
		},
	})
}
