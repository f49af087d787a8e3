package cloneset_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A stored spec that no webhook validated is reported once, in a condition and an event. It costs no request until it
// is corrected, and the set works from then on.
func TestInvalidSets(t *testing.T) {
	rolling := func(s v1beta1.RollingUpdateCloneSetStrategy) func(*v1beta1.CloneSet) {
		return func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate = &s }
	}
	noStrategy := func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{} }
	const scaling, updating = v1beta1.CloneSetConditionFailedScale, v1beta1.CloneSetConditionFailedUpdate
	cases := map[string]struct {
		why         string
		spoil, mend func(*v1beta1.CloneSet)
		condition   v1beta1.CloneSetConditionType
		text        string
		pods        int
	}{
		"selector that is none": {"no pod can be selected", func(s *v1beta1.CloneSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "In"}}
		}, func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchExpressions = nil }, scaling, "spec.selector", 0},
		"selector of others": {
			why: "each new pod would be released at once and replaced",
			spoil: func(s *v1beta1.CloneSet) {
				s.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
			},
			mend:      func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchLabels = map[string]string{"app": s.Name} },
			condition: scaling,
			text:      "does not match",
		},
		"selector that a new pod leaves": {"the reconciler writes the label to its pods", func(s *v1beta1.CloneSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{
				Key: "lifecycle.apps.kruise.io/state", Operator: "DoesNotExist",
			}}
		}, func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchExpressions = nil }, scaling, "does not match", 0},
		"partition": {
			why:       "it counts as none",
			spoil:     rolling(v1beta1.RollingUpdateCloneSetStrategy{Partition: ptr.To(intstr.FromString("lots"))}),
			mend:      noStrategy,
			condition: updating,
			text:      "partition",
			pods:      2,
		},
		"maxUnavailable": {
			why:       "the default counts",
			spoil:     rolling(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: ptr.To(intstr.FromString("5"))}),
			mend:      noStrategy,
			condition: updating,
			text:      "maxUnavailable",
			pods:      2,
		},
		"maxSurge": {
			why:       "it counts as none",
			spoil:     rolling(v1beta1.RollingUpdateCloneSetStrategy{MaxSurge: ptr.To(intstr.FromString("%"))}),
			mend:      noStrategy,
			condition: updating,
			text:      "maxSurge",
			pods:      2,
		},
		"scale maxUnavailable": {
			why:       "it counts as none",
			spoil:     func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromString("")) },
			mend:      func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.MaxUnavailable = nil },
			condition: updating,
			text:      "scaleStrategy.maxUnavailable",
			pods:      2,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, cloneset.Options{})
			set := m.create("web", 2, c.spoil)
			m.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				if len(pods) != c.pods || set.Status.ObservedGeneration != set.Generation {
					return fmt.Errorf("%s: %d pods, status %+v", c.why, len(pods), set.Status)
				}
				return all(fails(c.condition, c.text), m.emitted("InvalidSpec", 1))(set, pods)
			})
			m.idle(set)
			m.stays(set, m.emitted("InvalidSpec", 1))
			m.change(set, c.mend)
			m.eventually(set, all(settled, fails(c.condition, "")))
		})
	}
}

// A template whose pods the selector does not match changes no existing pod.
func TestTemplateLeavesItsSet(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 2, inPlace)
	m.eventually(set, settled)
	before := uids(m.pods(set))
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Labels = map[string]string{"app": "other"} })
	m.eventually(set, m.emitted("InvalidSpec", 1))
	m.idle(set)
	m.stays(set, all(counts(2, 2), states(inStates{normal: 2})))
	if now := uids(m.pods(set)); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("pods %v became %v", before, now)
	}
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Labels = map[string]string{"app": "web"} })
	m.eventually(set, settled)
}
