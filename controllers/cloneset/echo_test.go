package cloneset

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// An update event of a set is dropped only where the failure has another text and nothing else has changed.
func TestEchoes(t *testing.T) {
	failed := func(message string) v1beta1.CloneSetCondition {
		return v1beta1.CloneSetCondition{Type: v1beta1.CloneSetConditionFailedScale, Status: "True", Message: message}
	}
	conditions := func(all ...v1beta1.CloneSetCondition) func(*v1beta1.CloneSet) {
		return func(s *v1beta1.CloneSet) { s.Status.Conditions = all }
	}
	progress := v1beta1.CloneSetCondition{Type: v1beta1.CloneSetConditionTypeProgressing, Status: "True", Reason: "CloneSetUpdated"}
	for name, c := range map[string]struct {
		why           string
		before, after func(*v1beta1.CloneSet)
		want          bool
	}{
		"another text":          {"the reconciler wrote it", conditions(failed("request 1")), conditions(failed("request 2")), false},
		"the first failure":     {"the pass that reported it may have more to do", conditions(), conditions(failed("request 1")), true},
		"no failure any more":   {"as before", conditions(failed("request 1")), conditions(), true},
		"the same failure":      {"another field has changed, or the object was listed again", conditions(failed("request 1")), conditions(failed("request 1")), true},
		"another condition too": {"the rollout has another state", conditions(failed("request 1")), conditions(failed("request 2"), progress), true},
		"the spec too": {"a user has changed it", conditions(failed("request 1")), func(s *v1beta1.CloneSet) {
			conditions(failed("request 2"))(s)
			s.Spec.MinReadySeconds = 5
		}, true},
		"an annotation too": {"a user has changed it", conditions(failed("request 1")), func(s *v1beta1.CloneSet) {
			conditions(failed("request 2"))(s)
			s.Annotations = map[string]string{"a": "b"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(version string, change func(*v1beta1.CloneSet)) *unstructured.Unstructured {
				set := &v1beta1.CloneSet{}
				set.ResourceVersion = version
				change(set)
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
				if err != nil {
					t.Fatal(err)
				}
				return &unstructured.Unstructured{Object: content}
			}
			got := withoutEchoes().Update(event.UpdateEvent{ObjectOld: object("1", c.before), ObjectNew: object("2", c.after)})
			if got != c.want {
				t.Errorf("%s: passed %t, want %t", c.why, got, c.want)
			}
		})
	}
}
