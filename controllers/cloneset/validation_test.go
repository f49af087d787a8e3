package cloneset_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A stored spec that no webhook validated is reported once, in a condition and an event. It costs no request until it
// is corrected, and the set works from then on.
func TestInvalidSets(t *testing.T) {
	const scaling, updating = v1beta1.CloneSetConditionFailedScale, v1beta1.CloneSetConditionFailedUpdate
	for why, c := range map[string]struct {
		spoil, mend func(*v1beta1.CloneSet)
		condition   v1beta1.CloneSetConditionType
		text        string
		pods        int
	}{
		"each pod that ends would be replaced, without end": {
			func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever },
			func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.RestartPolicy = "" },
			scaling, "spec.template.spec.restartPolicy", 0,
		},
		"no number of pods is meant": {
			func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(-1)) }, scaled(2), scaling, "spec.replicas", 0,
		},
		"the reconciler writes the label to its pods": {
			func(s *v1beta1.CloneSet) {
				s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{
					Key: kruise.LifecycleStateKey, Operator: "DoesNotExist",
				}}
			},
			func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchExpressions = nil }, scaling, "does not match", 0,
		},
		"the text of the report must fit into the object and its event": {
			func(s *v1beta1.CloneSet) {
				s.Spec.UpdateStrategy.Type = v1beta1.CloneSetUpdateStrategyType(strings.Repeat("ü", 50_000))
			},
			func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.Type = "" }, updating, "spec.updateStrategy.type", 2,
		},
		"the default counts": {
			func(s *v1beta1.CloneSet) {
				s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
					MaxUnavailable: ptr.To(intstr.FromInt32(-1)),
				}
			},
			func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate = nil }, updating, "rollingUpdate.maxUnavailable", 2,
		},
	} {
		t.Run(why, func(t *testing.T) {
			m := newModel(t, cloneset.Options{})
			set := m.create("web", 2, c.spoil)
			m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if len(pods) != c.pods || set.Status.ObservedGeneration != set.Generation {
					return fmt.Errorf("%d pods, status %+v", len(pods), set.Status)
				}
				return all(fails(c.condition, c.text), m.emitted("InvalidSpec", 1))(set, pods)
			})
			if n := len(condition(set, c.condition)); n > 1024 {
				t.Errorf("the message has %d bytes", n)
			}
			m.Idle()
			m.stays(set, m.emitted("InvalidSpec", 1))
			m.change(set, c.mend)
			m.eventually(set, all(settled, fails(c.condition, "")))
		})
	}
}
