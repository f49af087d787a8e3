package cloneset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

// planCase is a set, what it owns, and the writes of its next pass.
type planCase struct {
	options func(*Options)
	// replicas, and the set beside them.
	replicas int32
	set      func(*v1beta1.CloneSet)
	pods     []*corev1.Pod
	claims   []string
	want     string
}

func checkPlans(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			o := observe(t, c.replicas, c.set)
			if c.options != nil {
				c.options(&o.options)
			}
			o.pods(c.pods...)
			o.claims(c.claims...)
			if got := strings.Join(o.writes(), ", "); got != c.want {
				t.Errorf("writes %q, want %q", got, c.want)
			}
		})
	}
}

func withPercent(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }
func withNumber(n int32) *intstr.IntOrString      { return ptr.To(intstr.FromInt32(n)) }

func inPlaceIfPossible(strategy v1beta1.RollingUpdateCloneSetStrategy) func(*v1beta1.CloneSet) {
	strategy.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType
	return rolling(strategy)
}

func onDelete(s *v1beta1.CloneSet) {
	s.Spec.UpdateStrategy.Type = v1beta1.OnDeleteCloneSetUpdateStrategyType
}

func hook(s *v1beta1.CloneSet) *kruise.Lifecycle {
	if s.Spec.Lifecycle == nil {
		s.Spec.Lifecycle = &kruise.Lifecycle{}
	}
	return s.Spec.Lifecycle
}

func holdsDeletion(s *v1beta1.CloneSet) {
	hook(s).PreDelete = &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}}
}

func holdsUpdate(s *v1beta1.CloneSet) {
	hook(s).InPlaceUpdate = &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}}
}

func named(names ...string) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.PodsToDelete = names }
}

func scalesWith(maxUnavailable *intstr.IntOrString) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = maxUnavailable }
}

var held = podtest.Label("example.com/hook", "true")

// How many pods are created and deleted, and which.
func TestPlanScale(t *testing.T) {
	preparing := both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Partition: withNumber(1)}), holdsUpdate)
	checkPlans(t, map[string]planCase{
		"new set: all pods are created": {replicas: 2, want: "create web-new-a of web:1, create web-new-b of web:1"},
		"limited: no more than two pods may be unavailable": {
			replicas: 5, set: scalesWith(withNumber(2)), want: "create web-new-a of web:1, create web-new-b of web:1",
		},
		"two revisions: the partition has the current revision, and the rest the update revision": {
			replicas: 5,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Partition: withNumber(3)}),
			pods:     parse("a:1 b:1"),
			want:     "create web-new-a of web:1, create web-new-b of web:2, create web-new-c of web:2",
		},
		"scale-in beyond the budget: ready pods that are not available are not deleted beyond the budget": {
			replicas: 3, set: func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 9999 }, pods: parse("a:1 b:1 c:1 d:1 e:1"),
		},
		"scale-in: available pods of the same age are deleted from the last name": {
			replicas: 1,
			set:      rolling(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: withPercent("100%"), Paused: true}),
			pods:     parse("a:1 b:1 c:1"),
			want:     "delete web-a, delete web-b",
		},
		"named pod, same size: it is replaced": {
			replicas: 3, set: both(onDelete, named("web-b")), pods: parse("a:1 b:1 c:1"), want: "delete web-b",
		},
		"chosen by label: the label has the effect of a name": {
			replicas: 2,
			set:      onDelete,
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"), podtest.New("web-b", "web:1", podtest.Label(kruise.SpecifiedDeleteKey, "")),
			},
			want: "delete web-b",
		},
		"held: the held pod counts until it is gone": {
			replicas: 3,
			set:      both(named("web-b"), holdsDeletion),
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"),
				podtest.New("web-b", "web:1", held, podtest.State(kruise.LifecycleStatePreparingDelete)),
				podtest.New("web-c", "web:1"),
			},
		},
		"held, not counted: excludePreparingDelete replaces the held pod": {
			replicas: 3,
			set: both(named("web-b"), holdsDeletion, func(s *v1beta1.CloneSet) {
				s.Spec.ScaleStrategy.ExcludePreparingDelete = true
			}),
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"),
				podtest.New("web-b", "web:1", held, podtest.State(kruise.LifecycleStatePreparingDelete)),
				podtest.New("web-c", "web:1"),
			},
			want: "create web-new-a of web:1",
		},
		"held, not counted by option: the option has the effect of the field": {
			options:  func(o *Options) { o.ExcludePreparingDelete = true },
			replicas: 3,
			set:      both(named("web-b"), holdsDeletion),
			pods: []*corev1.Pod{
				podtest.New("web-a", "web:1"),
				podtest.New("web-b", "web:1", held, podtest.State(kruise.LifecycleStatePreparingDelete)),
				podtest.New("web-c", "web:1"),
			},
			want: "create web-new-a of web:1",
		},
		"OnDelete, scale-out: new pods are updated ones": {
			replicas: 2, set: both(withImage("web:2"), onDelete), pods: parse("a:1"), want: "create web-new-a of web:2",
		},
		"held before the update: a pod that a hook holds does not count as updated": {
			replicas: 2, set: preparing, pods: several(1, "web:1", held, podtest.State(kruise.LifecycleStatePreparingUpdate)),
			want: "create web-new-a of web:2",
		},
		"held before the update, by option: it counts as updated, so that the missing pod is an old one": {
			options:  func(o *Options) { o.PreparingUpdateIsUpdated = true },
			replicas: 2, set: preparing, pods: several(1, "web:1", held, podtest.State(kruise.LifecycleStatePreparingUpdate)),
			want: "create web-new-a of web:1",
		},
		"paused: a paused set is scaled": {
			replicas: 2,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Paused: true}),
			pods:     parse("a:1"),
			want:     "create web-new-a of web:2",
		},
		"being deleted: its pods are those of the garbage collector": {
			replicas: 2,
			set: func(s *v1beta1.CloneSet) {
				s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: podtest.Noon()}, []string{"a/b"}
			},
		},
		"released: the selector no longer matches the pod, which is replaced": {
			replicas: 2,
			pods:     []*corev1.Pod{podtest.New("web-a", "web:1"), podtest.New("web-b", "web:1", podtest.Label("app", "other"))},
			want:     "patch web-b, create web-new-a of web:1",
		},
	})
}

// Which pods are updated, and how.
func TestPlanUpdates(t *testing.T) {
	checkPlans(t, map[string]planCase{
		"OnDelete: no pod is updated": {replicas: 3, set: both(withImage("web:2"), onDelete), pods: parse("a:1 b:1 c:1")},
		"paused: no pod is updated": {
			replicas: 3,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Paused: true}),
			pods:     parse("a:1 b:1 c:1"),
		},
		"partition: 99% of four pods are four, of which one is updated all the same": {
			replicas: 4,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Partition: withPercent("99%")}),
			pods:     parse("a:1 b:1 c:1 d:1"),
			want:     "take web-a out of traffic, update web-a to web:2",
		},
		"budget: the pod that is not ready counts, and may be updated itself": {
			replicas: 4,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: withNumber(2)}),
			pods:     parse("a:1 b:1 c:1 d:1-"),
			want:     "take web-d out of traffic, take web-a out of traffic, update web-d to web:2, update web-a to web:2",
		},
		"budget by default: a fifth of five pods is one": {
			replicas: 5,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}),
			pods:     parse("a:1 b:1 c:1 d:1 e:1"),
			want:     "take web-a out of traffic, update web-a to web:2",
		},
		"label: each update takes the pod out of traffic, also where no container changes": {
			replicas: 1, pods: parse("a:1"),
			set: both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), withImage("web:1"), func(s *v1beta1.CloneSet) {
				s.Spec.Template.Labels["team"] = "toys"
			}),
			want: "take web-a out of traffic, update web-a to web:1",
		},
		"recreate: one pod is marked, and deleted in a later pass": {
			replicas: 5,
			set:      rolling(v1beta1.RollingUpdateCloneSetStrategy{}),
			pods:     parse("a:1 b:1 c:1 d:1 e:1"),
			want:     "mark web-a",
		},
		"not possible in place: a running container keeps its environment": {
			replicas: 1,
			set: both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
			}),
			pods: parse("a:1"),
			want: "mark web-a",
		},
		"not possible in place, InPlaceOnly: the pod is not recreated": {
			replicas: 1,
			set: both(rolling(v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType,
			}), func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
			}),
			pods: parse("a:1"),
		},
		"held before the update: the hook holds the pod, whose containers stay": {
			replicas: 1,
			set:      both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), holdsUpdate),
			pods:     parse("a:1h"),
			want:     "move web-a to PreparingUpdate",
		},
		"rolled back while held: the pod is Normal again, and no container changes": {
			replicas: 1,
			set:      both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), holdsUpdate, withImage("web:1")),
			pods:     several(1, "web:1", held, podtest.State(kruise.LifecycleStatePreparingUpdate)),
			want:     "move web-a to Normal",
		},
		"grace period: the pod is out of traffic first": {
			replicas: 1,
			set: inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{
				InPlaceUpdateStrategy: &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 60},
			}),
			pods: parse("a:1"),
			want: "take web-a out of traffic, update web-a to web:1",
		},
		"maxUnavailable that cannot be parsed: the default counts": {
			replicas: 5,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: withPercent("5")}),
			pods:     parse("a:1 b:1 c:1 d:1 e:1"),
			want:     "take web-a out of traffic, update web-a to web:2",
		},
		"template that the selector does not match: its pods would be released": {
			replicas: 2,
			set: both(inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{}), func(s *v1beta1.CloneSet) {
				s.Spec.Template.Labels = map[string]string{"app": "other"}
			}),
			pods: parse("a:1 b:1"),
		},
	})
}

// Which lifecycle states pods move to.
func TestPlanStates(t *testing.T) {
	preNormal := func(s *v1beta1.CloneSet) {
		hook(s).PreNormal = &kruise.LifecycleHook{LabelsHandler: map[string]string{"example.com/ready": "yes"}}
	}
	preparing := podtest.State(kruise.LifecycleStatePreparingNormal)
	checkPlans(t, map[string]planCase{
		"on a node: a new pod without a hook is Normal there": {
			replicas: 1, pods: several(1, "web:1", preparing), want: "move web-a to Normal",
		},
		"preNormal: the hook holds the new pod": {replicas: 1, set: preNormal, pods: several(1, "web:1", preparing)},
		"hook reached: the pod has what the hook asks for": {
			replicas: 1,
			set:      preNormal,
			pods:     several(1, "web:1", preparing, podtest.Label("example.com/ready", "yes")),
			want:     "move web-a to Normal",
		},
	})
}
