package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

// What the cache drops of a node is what nobody reads, and no more.
func TestLeanNodes(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	want := node.DeepCopy()
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"nginx:1"}}}
	options, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	for object, by := range options.Cache.ByObject {
		if _, is := object.(*corev1.Node); !is {
			continue
		}
		got, err := by.Transform(node)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if got, err := lean("a tombstone"); got != "a tombstone" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if len(options.Cache.ByObject) != 5 {
		t.Errorf("%d kinds", len(options.Cache.ByObject))
	}
}

// An untyped Job has no spec, and a typed one keeps it.
func TestLeanJobs(t *testing.T) {
	raw := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"template": 1}, "status": map[string]any{"active": 1}}}
	if _, err := leanJob(raw); err != nil || raw.Object["spec"] != nil || raw.Object["status"] == nil {
		t.Errorf("%v, %v", raw.Object, err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{}}}, Spec: batchv1.JobSpec{Parallelism: new(int32)}}
	if _, err := leanJob(job); err != nil || job.Spec.Parallelism == nil || job.ManagedFields != nil {
		t.Errorf("%v, %v", job, err)
	}
	if got, err := leanJob("a tombstone"); got != "a tombstone" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// The metadata of a workload stays without annotations, and an untyped workload of no UnitedDeployment without all but its identity. Others
// stay without managedFields alone.
func TestLeanWorkloads(t *testing.T) {
	full := metav1.ObjectMeta{
		Name: "web", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}
	untyped := func(owner string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(1)}, "status": map[string]any{"replicas": int64(1)},
		}}
		o.SetName("web")
		o.SetUID("1")
		o.SetAnnotations(full.Annotations)
		o.SetManagedFields(full.ManagedFields)
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: owner, Controller: ptr.To(true)}})
		return o
	}
	cases := map[string]struct {
		why    string
		object metav1.Object
		want   map[string]string
		spec   bool
	}{
		"metadata":                {"no reconciler reads its annotations", &metav1.PartialObjectMetadata{ObjectMeta: *full.DeepCopy()}, nil, false},
		"whole":                   {"a reconciler of an embedder may read them", &appsv1.Deployment{ObjectMeta: *full.DeepCopy()}, full.Annotations, false},
		"of a UnitedDeployment":   {"its reconciler compares all fields", untyped("UnitedDeployment"), full.Annotations, true},
		"untyped of another kind": {"no reconciler reads it", untyped("Rollout"), nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := leanWorkload(c.object)
			if diff := cmp.Diff(c.want, c.object.GetAnnotations()); diff != "" || err != nil || c.object.GetManagedFields() != nil || c.object.GetName() != "web" {
				t.Errorf("%s: %v (-want +got):\n%s", c.why, err, diff)
			}
			if o, is := c.object.(*unstructured.Unstructured); is && (o.Object["spec"] != nil != c.spec || len(o.GetOwnerReferences()) != 1 || o.GetUID() != "1") {
				t.Errorf("%s: %v", c.why, o.Object)
			}
		})
	}
}
