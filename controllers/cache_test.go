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

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// What the cache drops of a node is what no reconciler reads, and no more.
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
	if got, err := leanNode("a tombstone"); got != "a tombstone" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if len(options.Cache.ByObject) != 6 {
		t.Errorf("%d kinds", len(options.Cache.ByObject))
	}
}

// An untyped Job has no spec, and a typed one keeps it.
func TestLeanJobs(t *testing.T) {
	raw := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"template": 1}, "status": map[string]any{"active": 1},
	}}
	if _, err := leanJob(raw); err != nil || raw.Object["spec"] != nil || raw.Object["status"] == nil {
		t.Errorf("%v, %v", raw.Object, err)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec:       batchv1.JobSpec{Parallelism: new(int32)},
	}
	if _, err := leanJob(job); err != nil || job.Spec.Parallelism == nil || job.ManagedFields != nil {
		t.Errorf("%v, %v", job, err)
	}
	if got, err := leanJob("a tombstone"); got != "a tombstone" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// What PersistentPodStates are decided by is the same before and after.
func TestLeanWorkloadsForPodStates(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{
			"name": "web", "namespace": "n", "uid": "1", "generation": int64(7), "deletionTimestamp": "2026-01-01T00:00:00Z",
			"labels": map[string]any{"a": "b"},
			"annotations": map[string]any{
				v1beta1.AnnotationAutoGeneratePersistentPodState: "true", v1beta1.AnnotationRequiredPersistentTopology: "zone",
				"c": "d",
				v1beta1.AnnotationReleaseMissingTopologyAfter: "10m", v1beta1.AnnotationRestorePodAnnotations: "true",
			},
		},
		"spec": map[string]any{
			"replicas": int64(3),
			"ordinals": map[string]any{"start": int64(2)},
			"template": map[string]any{"spec": map[string]any{}},
		},
	}}
	want, annotations, deleted := podstates.WorkloadOf(o, true), o.GetAnnotations(), o.GetDeletionTimestamp()
	delete(annotations, "c")
	for range 2 { // a resync transforms an object again
		if _, err := leanWorkload(o); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, podstates.WorkloadOf(o, true), cmp.AllowUnexported(ordinals.Set{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(annotations, o.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	if !deleted.Equal(o.GetDeletionTimestamp()) || o.GetName() != "web" || o.GetNamespace() != "n" || o.GetUID() != "1" ||
		o.GetGeneration() != 7 {
		t.Errorf("%v", o.Object)
	}
	if _, has, _ := stored.Field(o, "spec", "template"); has || o.GetLabels() != nil {
		t.Errorf("the template or the labels stay: %v", o.Object)
	}
}

// The metadata of a workload stays without annotations, and an untyped workload of no UnitedDeployment without all but
// its identity. Others stay without managedFields alone.
func TestLeanWorkloads(t *testing.T) {
	full := metav1.ObjectMeta{
		Name:          "web",
		Labels:        map[string]string{"a": "b"},
		Annotations:   map[string]string{"c": "d"},
		ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}
	untyped := func(owner string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(1)},
			"status": map[string]any{"replicas": int64(1)},
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
		"metadata": {
			why: "no reconciler reads its annotations", object: &metav1.PartialObjectMetadata{ObjectMeta: *full.DeepCopy()},
		},
		"whole": {
			why:    "a reconciler of an embedder may read them",
			object: &appsv1.Deployment{ObjectMeta: *full.DeepCopy()},
			want:   full.Annotations,
		},
		"of a UnitedDeployment": {
			why: "its reconciler compares all fields", object: untyped("UnitedDeployment"), want: full.Annotations, spec: true,
		},
		"untyped of another kind": {"no reconciler reads it", untyped("Rollout"), nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := leanWorkload(c.object)
			if diff := cmp.Diff(c.want, c.object.GetAnnotations()); diff != "" || err != nil ||
				c.object.GetManagedFields() != nil || c.object.GetName() != "web" {
				t.Errorf("%s: %v (-want +got):\n%s", c.why, err, diff)
			}
			if o, is := c.object.(*unstructured.Unstructured); is &&
				((o.Object["status"] != nil) != c.spec || len(o.GetOwnerReferences()) != 1 || o.GetUID() != "1") {
				t.Errorf("%s: %v", c.why, o.Object)
			}
		})
	}
}
