package workload_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// A pod that has the name of a new pod is the owner's, and not observed yet, or fails the creation.
func TestTakenName(t *testing.T) {
	controlledBy := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new-0", OwnerReferences: []metav1.OwnerReference{
			{Kind: "Site", Name: "web", UID: uid, Controller: ptr.To(true)},
		}}}
	}
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		there    *corev1.Pod
		err      error
		outdated bool
	}{
		"of the owner":                 {there: controlledBy("mine"), outdated: true},
		"gone":                         {err: apierrors.NewNotFound(pods, "new-0"), outdated: true},
		"of another owner of the name": {there: controlledBy("theirs")},
		"of no owner":                  {there: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new-0"}}},
		"not readable":                 {err: errors.New("timeout")},
	} {
		t.Run(name, func(t *testing.T) {
			in := newServer(t).input()
			in.Scale.Limits.Replicas = 1
			in.Build = func([]workload.Creation) ([][]write.Object, error) {
				return [][]write.Object{{controlledBy("mine")}}, nil
			}
			pass, err := workload.Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			asked := false
			for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
				for len(writes) > 0 {
					w := writes[0]
					var there write.Object
					err := error(apierrors.NewAlreadyExists(pods, "new-0"))
					if w.Action == workload.ActionObserve {
						asked = true
						if err = c.err; c.there != nil {
							there = c.there
						}
					}
					writes = append(writes[1:], pass.Answer(noon, w, there, err)...)
				}
			}
			failed := len(pass.Failures()) == 1 && apierrors.IsAlreadyExists(pass.Failures()[0].Err)
			if !asked || pass.IsOutdated() != c.outdated || failed == c.outdated {
				t.Errorf("asked %t, outdated %t, failures %v", asked, pass.IsOutdated(), pass.Failures())
			}
		})
	}
}
