package native_test

import (
	"encoding/json"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
)

// TestUnknownFields: a field of pods that the types of this build lack stays in the template of a ReplicaSet.
func TestUnknownFields(t *testing.T) {
	isController := true
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "d", Generation: 2}}
	d.Spec.Paused, d.Spec.Replicas = true, ptr.To(int32(1))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:2"}}
	set := &appsv1.ReplicaSet{}
	raw := `{"metadata":{"name":"web-1","uid":"s","resourceVersion":"7"},"spec":{"replicas":1,
		"selector":{"matchLabels":{"app":"web","pod-template-hash":"1"}},
		"template":{"metadata":{"labels":{"app":"web","pod-template-hash":"1"}},"spec":{"newer":{"a":1},
		"containers":[{"name":"web","image":"web:1","newest":[1],"resources":{}}]}}},"status":{"replicas":1}}`
	if err := json.Unmarshal([]byte(raw), set); err != nil {
		t.Fatal(err)
	}
	set.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "d", Controller: &isController}}
	plan := native.Deployment(d, native.Observed{ReplicaSets: []*appsv1.ReplicaSet{set}}, native.Rollout{})
	pass, err := workload.Plan(plan.Input)
	if err != nil {
		t.Fatal(err)
	}
	writes := plan.Writes(pass)
	if len(writes) != 1 {
		t.Fatalf("writes %v", writes)
	}
	data, err := writes[0].Data()
	if err != nil {
		t.Fatal(err)
	}
	patch, err := evanphx.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply([]byte(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	var got struct {
		Spec struct {
			Template struct {
				Metadata metav1.ObjectMeta
				Spec     struct {
					Newer      map[string]int
					Containers []struct{ Newest []int }
				}
			}
		}
	}
	if err := json.Unmarshal(after, &got); err != nil {
		t.Fatal(err)
	}
	if of := got.Spec.Template; of.Spec.Newer["a"] != 1 || len(of.Spec.Containers[0].Newest) != 1 ||
		of.Metadata.Annotations[native.HoldKey] == "" {
		t.Errorf("%s", after)
	}
}
