package native_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/revision"
)

// cluster holds a StatefulSet db of one pod, its revisions and its pod.
type cluster struct {
	*fake.Clientset

	revisions int
}

func templateOf(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	}
}

// setOf is a StatefulSet or a DaemonSet by the name db.
func setOf(image string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(int32(1)), Template: templateOf(image),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdateRevision: "db-1"},
	}
}

// controlled is the metadata of an object of a set.
func controlled(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "uid", Controller: ptr.To(true),
		}},
	}
}

func revisionOf(number int, image string) *appsv1.ControllerRevision {
	template := templateOf(image)
	data, err := revision.Encode(&template)
	if err != nil {
		panic(err) // of values of this file
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: controlled(fmt.Sprintf("db-%d", number), map[string]string{"app": "db"}),
		Data:       runtime.RawExtension{Raw: data}, Revision: int64(number),
	}
}

// podOf is a pod that runs and serves.
func podOf(name, revision, image string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: controlled(name, map[string]string{"app": "db", appsv1.StatefulSetRevisionLabel: revision}),
		Spec:       templateOf(image).Spec,
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1_600_000_000, 0),
			}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Image: image, ImageID: "id-of-" + image, ContainerID: "c-" + image,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
	pod.UID = types.UID("uid-" + name[len("db-"):])
	return pod
}

func newCluster(image string) *cluster {
	return &cluster{
		Clientset: fake.NewClientset(setOf(image), revisionOf(1, image), podOf("db-0", "db-1", image)), revisions: 1,
	}
}

// setImage changes the template, as a user does, and what the built-in controller makes of that.
func (c *cluster) setImage(ctx context.Context, image string) {
	c.revisions++
	rev := revisionOf(c.revisions, image)
	set := setOf(image)
	set.Generation, set.Status.ObservedGeneration, set.Status.UpdateRevision = 2, 2, rev.Name
	_, _ = c.AppsV1().ControllerRevisions("shop").Create(ctx, rev, metav1.CreateOptions{})
	_, _ = c.AppsV1().StatefulSets("shop").Update(ctx, set, metav1.UpdateOptions{})
}

// runPods has the kubelet run what the pod asks for.
func (c *cluster) runPods(ctx context.Context) {
	pod, err := c.CoreV1().Pods("shop").Get(ctx, "db-0", metav1.GetOptions{})
	if err != nil {
		return
	}
	pod.Status = podOf("db-0", "", pod.Spec.Containers[0].Image).Status
	_, _ = c.CoreV1().Pods("shop").Update(ctx, pod, metav1.UpdateOptions{})
}
