package cloneset_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A stored spec that the webhook would reject is reported once, in a condition and an event, and costs no more
// requests.
func TestInvalidSpec(t *testing.T) {
	const scaling, updating = v1beta1.CloneSetConditionFailedScale, v1beta1.CloneSetConditionFailedUpdate
	rolling := func(s *v1beta1.CloneSet) *v1beta1.RollingUpdateCloneSetStrategy {
		s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
		return s.Spec.UpdateStrategy.RollingUpdate
	}
	cases := map[string]struct {
		why    string
		change func(*v1beta1.CloneSet)
		in     v1beta1.CloneSetConditionType
		text   string
		pods   int
	}{
		"pods that end": {
			why:    "each pod that ends would be replaced, without end",
			change: func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever },
			in:     scaling,
			text:   "spec.template.spec.restartPolicy",
		},
		"pods with a deadline": {
			why:    "as before",
			change: func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.ActiveDeadlineSeconds = ptr.To(int64(5)) },
			in:     scaling,
			text:   "spec.template.spec.activeDeadlineSeconds",
		},
		"empty selector": {
			why:    "the selector of the status would select every pod",
			change: func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchLabels = nil },
			in:     scaling,
			text:   "spec.selector",
		},
		"negative replicas": {
			why:    "no number of pods is meant",
			change: func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(-1)) },
			in:     scaling,
			text:   "spec.replicas",
		},
		"a long value": {
			"the text of the report must fit into the object and its event",
			func(s *v1beta1.CloneSet) {
				s.Spec.UpdateStrategy.Type = v1beta1.CloneSetUpdateStrategyType(strings.Repeat("ü", 50_000))
			}, updating, "spec.updateStrategy.type", 2,
		},
		"negative budget": {
			why:    "no pod is updated",
			change: func(s *v1beta1.CloneSet) { rolling(s).MaxUnavailable = ptr.To(intstr.FromInt32(-1)) },
			in:     updating,
			text:   "rollingUpdate.maxUnavailable",
			pods:   2,
		},
		"unknown policy": {
			why:    "pods are recreated",
			change: func(s *v1beta1.CloneSet) { rolling(s).PodUpdatePolicy = "Gently" },
			in:     updating,
			text:   "rollingUpdate.podUpdatePolicy",
			pods:   2,
		},
		"deadline before ready": {
			why:    "each rollout would be late",
			change: func(s *v1beta1.CloneSet) { s.Spec.ProgressDeadlineSeconds = ptr.To(int32(-1)) },
			in:     updating,
			text:   "spec.progressDeadlineSeconds",
			pods:   2,
		},
		"a pod chosen twice": {
			why:    "the pod is deleted once",
			change: func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.PodsToDelete = []string{"x", "x"} },
			in:     updating,
			text:   "spec.scaleStrategy.podsToDelete",
			pods:   2,
		},
		"a text as a percentage": {
			why:    "the text is 5% of the pods",
			change: func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromString("5")) },
			in:     updating,
			text:   "spec.scaleStrategy.maxUnavailable",
			pods:   2,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, cloneset.Options{})
			set := m.create("web", 2, c.change)
			reported := false
			m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				reported = reported || strings.Contains(condition(set, c.in), c.text)
				if !reported || len(pods) != c.pods || set.Status.ObservedGeneration == 0 {
					return fmt.Errorf("%s: %d pods, want %d, conditions %+v, want %s about %s",
						c.why, len(pods), c.pods, set.Status.Conditions, c.in, c.text)
				}
				return nil
			})
			m.Still()
			if n := len(condition(set, c.in)); n > 1024 {
				t.Errorf("the message has %d bytes", n)
			}
			if n := len(m.Server.Events(set, "InvalidSpec")); n != 1 {
				t.Errorf("%d events, want 1", n)
			}
			m.Server.Requests()
			m.Reconcile()
			m.Reconcile()
			if again := m.Server.Requests(); len(again) > 0 {
				t.Errorf("later passes send %v", again)
			}
		})
	}
}
