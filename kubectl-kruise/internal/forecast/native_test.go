package forecast_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload/native"
)

var created = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// nativeObjects are three pods of a set of Kubernetes, and its revision.
func nativeObjects(t *testing.T, set client.Object, template *corev1.PodTemplateSpec) (string, []client.Object) {
	t.Helper()
	data, err := revision.Encode(template)
	if err != nil {
		t.Fatal(err)
	}
	kind := "StatefulSet"
	if _, is := set.(*appsv1.DaemonSet); is {
		kind = "DaemonSet"
	}
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind(kind))}
	stored := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: revision.Name("db", revision.Hash(data, nil)), OwnerReferences: owner, UID: "revision",
		},
		Data: runtime.RawExtension{Raw: data}, Revision: 1,
	}
	hash := stored.Name
	if kind == "DaemonSet" {
		hash = revision.Short(stored.Name)
		stored.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}
	}
	objects := []client.Object{stored}
	for i := range 3 {
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		pod.Namespace, pod.Name, pod.UID = "shop", fmt.Sprint("db-", i), types.UID(fmt.Sprint("pod-", i))
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = hash
		pod.OwnerReferences, pod.CreationTimestamp = owner, metav1.NewTime(created)
		pod.Spec.NodeName = fmt.Sprint("n", i)
		ready := metav1.NewTime(created.Add(20 * time.Second))
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: ready},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ready},
		}, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "db", Image: "db:1", ImageID: "db-1", ContainerID: "x://" + pod.Name, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ready}},
		}}}
		node := &corev1.Node{}
		node.Name, node.UID = pod.Spec.NodeName, types.UID("node-"+pod.Spec.NodeName)
		objects = append(objects, pod, node)
	}
	return hash, objects
}

func nativeTemplate() corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{}
	template.Labels = map[string]string{"app": "db"}
	template.Spec.Containers = []corev1.Container{{Name: "db", Image: "db:1"}}
	return template
}

func nativeMeta(rollout string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: "db", UID: "db", Generation: 1, Annotations: map[string]string{native.RolloutKey: rollout},
	}
}

func TestNativeStatefulSet(t *testing.T) {
	for name, c := range map[string]struct {
		rollout string
		change  func(*appsv1.StatefulSet)
	}{
		"in place": {"{}", func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "db:2" }},
		"partition": {`{"partition":2,"maxUnavailable":2}`, func(set *appsv1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = "db:2"
		}},
		"a variable": {"{}", func(set *appsv1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
			*set.Spec.Replicas = 2
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: nativeMeta(c.rollout)}
			set.Spec.Replicas = ptrTo(int32(3))
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
			set.Spec.Template = nativeTemplate()
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			var objects []client.Object
			set.Status.UpdateRevision, objects = nativeObjects(t, set, &set.Spec.Template)
			wanted := set.DeepCopy()
			c.change(wanted)
			f, err := forecast.Of(t.Context(), forecast.Input{
				Now: created.Add(time.Hour), Live: set, Wanted: wanted, Objects: objects,
			})
			if err != nil {
				t.Fatal(err)
			}
			compareText(t, "native statefulset "+name, f)
		})
	}
}

func TestNativeDaemonSet(t *testing.T) {
	for name, c := range map[string]struct {
		rollout string
		change  func(*appsv1.DaemonSet)
	}{
		"in place": {`{"maxUnavailable":2}`, func(set *appsv1.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].Image = "db:2"
		}},
		"a variable": {`{"partition":1}`, func(set *appsv1.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.DaemonSet{ObjectMeta: nativeMeta(c.rollout)}
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
			set.Spec.Template = nativeTemplate()
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
			_, objects := nativeObjects(t, set, &set.Spec.Template)
			set.Status.DesiredNumberScheduled = 3
			wanted := set.DeepCopy()
			c.change(wanted)
			f, err := forecast.Of(t.Context(), forecast.Input{
				Now: created.Add(time.Hour), Live: set, Wanted: wanted, Objects: objects,
			})
			if err != nil {
				t.Fatal(err)
			}
			compareText(t, "native daemonset "+name, f)
		})
	}
}

// A set of Kubernetes that does not ask for updates in place is refused.
func TestNativeWithoutAnnotation(t *testing.T) {
	set := &appsv1.StatefulSet{}
	_, err := forecast.Of(t.Context(), forecast.Input{Live: set, Wanted: set})
	var unsupported *forecast.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Error(err)
	}
}
