package cloneset_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// user creates and changes the objects of a namespace, and reads them.
type user struct {
	*testing.T

	client    client.Client
	namespace string
}

// create creates a set with nothing but what is required, and what change adds.
func (u *user) create(name string, replicas int32, change func(*v1beta1.CloneSet)) *v1beta1.CloneSet {
	u.Helper()
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
	set.Spec.Replicas = &replicas
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	set.Spec.Template.Labels = map[string]string{"app": name}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	if change != nil {
		change(set)
	}
	if err := u.client.Create(u.Context(), set); err != nil {
		u.Fatal(err)
	}
	return set
}

// change patches the set.
func (u *user) change(set *v1beta1.CloneSet, changes ...func(*v1beta1.CloneSet)) {
	u.Helper()
	u.look(set)
	before := set.DeepCopy()
	for _, change := range changes {
		change(set)
	}
	if err := u.client.Patch(u.Context(), set, client.MergeFrom(before)); err != nil {
		u.Fatal(err)
	}
}

func (u *user) scale(set *v1beta1.CloneSet, replicas int32) {
	u.Helper()
	u.change(set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = &replicas })
}

// look reads an object.
func (u *user) look(o client.Object) {
	u.Helper()
	if err := u.client.Get(u.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		u.Fatal(err)
	}
}

// pods returns the pods with the label of the set that are not terminating.
func (u *user) pods(set *v1beta1.CloneSet) []corev1.Pod {
	u.Helper()
	var list corev1.PodList
	if err := u.client.List(u.Context(), &list, client.InNamespace(u.namespace),
		client.MatchingLabels{"app": set.Name}); err != nil {
		u.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// claims returns the claims that are not terminating.
func (u *user) claims() []corev1.PersistentVolumeClaim {
	u.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := u.client.List(u.Context(), &list, client.InNamespace(u.namespace)); err != nil {
		u.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(c corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })
}

// claimsOf returns the names of the claims that an object controls.
func (u *user) claimsOf(owner types.UID) []string {
	u.Helper()
	return claimNames(slices.DeleteFunc(u.claims(), func(c corev1.PersistentVolumeClaim) bool {
		ref := metav1.GetControllerOf(&c)
		return ref == nil || ref.UID != owner
	}))
}

// patch changes the metadata of a pod by a merge patch.
func (u *user) patch(pod *corev1.Pod, metadata string) {
	u.Helper()
	if err := u.client.Patch(u.Context(), pod,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":`+metadata+`}`))); err != nil {
		u.Fatal(err)
	}
}

func (u *user) delete(pods ...corev1.Pod) {
	u.Helper()
	for i := range pods {
		if err := u.client.Delete(u.Context(), &pods[i]); err != nil {
			u.Fatal(err)
		}
	}
}

// jobs returns the pull jobs of the namespace, as "image parallelism".
func (u *user) jobs() []string {
	u.Helper()
	var list v1beta1.ImagePullJobList
	if err := u.client.List(u.Context(), &list, client.InNamespace(u.namespace)); err != nil {
		u.Fatal(err)
	}
	var jobs []string
	for _, job := range list.Items {
		jobs = append(jobs, fmt.Sprintf("%s %s", job.Spec.Image, job.Spec.Parallelism))
	}
	return jobs
}

// decision returns the label of pre-download of the update revision of a set; empty for none.
func (u *user) decision(set *v1beta1.CloneSet) string {
	u.Helper()
	rev := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: u.namespace, Name: set.Status.UpdateRevision,
	}}
	u.look(rev)
	for _, label := range []string{v1beta1.ImagePreDownloadCreatedKey, v1beta1.ImagePreDownloadIgnoredKey} {
		if rev.Labels[label] == "true" {
			return label
		}
	}
	return ""
}
