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
	objects := nativePods("db", template)
	for _, o := range objects {
		if pod, is := o.(*corev1.Pod); is {
			pod.Labels[appsv1.ControllerRevisionHashLabelKey], pod.OwnerReferences = hash, owner
		}
	}
	return hash, append(objects, stored)
}

// nativePods are three pods of a template, and their nodes.
func nativePods(name string, template *corev1.PodTemplateSpec) (objects []client.Object) {
	for i := range 3 {
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		pod.Namespace, pod.Name, pod.UID = "shop", fmt.Sprint(name, "-", i), types.UID(fmt.Sprint("pod-", i))
		pod.CreationTimestamp = metav1.NewTime(created)
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
	return objects
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

// deploymentObjects are a Deployment of three pods, its ReplicaSet and its pods.
func deploymentObjects(rollout string) (*appsv1.Deployment, []client.Object) {
	d := &appsv1.Deployment{ObjectMeta: nativeMeta(rollout)}
	d.Spec.Replicas = ptrTo(int32(3))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	d.Spec.Template = nativeTemplate()
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "db-abc", UID: "set", CreationTimestamp: metav1.NewTime(created),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment")),
		},
	}}
	set.Spec.Replicas, set.Spec.Selector = ptrTo(int32(3)), d.Spec.Selector.DeepCopy()
	set.Spec.Template = *d.Spec.Template.DeepCopy()
	set.Spec.Template.Labels["pod-template-hash"], set.Spec.Selector.MatchLabels["pod-template-hash"] = "abc", "abc"
	set.Status.Replicas, set.Status.AvailableReplicas = 3, 3
	objects := []client.Object{set}
	for _, o := range nativePods("db", &set.Spec.Template) {
		if pod, is := o.(*corev1.Pod); is {
			pod.OwnerReferences = []metav1.OwnerReference{
				*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
			}
		}
		objects = append(objects, o)
	}
	return d, objects
}

// The hold lasts until the pods run the change. The built-in controller makes a change that is not possible in place.
func TestNativeDeployment(t *testing.T) {
	image := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "db:2" }
	variable := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
	}
	for name, c := range map[string]struct {
		rollout string
		change  func(*appsv1.Deployment)
	}{
		"in place": {"{}", image},
		"partition": {`{"partition":1,"maxUnavailable":2}`, func(d *appsv1.Deployment) {
			image(d)
			*d.Spec.Replicas = 4
		}},
		"a variable":               {"{}", variable},
		"a variable in place only": {`{"podUpdatePolicy":"InPlaceOnly"}`, variable},
		"a variable with strategy Recreate": {"{}", func(d *appsv1.Deployment) {
			variable(d)
			d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		}},
		"a restart and fewer replicas": {"{}", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
			*d.Spec.Replicas = 2
		}},
		"paused by the user": {"{}", func(d *appsv1.Deployment) {
			image(d)
			d.Spec.Paused = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			live, objects := deploymentObjects(c.rollout)
			wanted := live.DeepCopy()
			c.change(wanted)
			f, err := forecast.Of(t.Context(), forecast.Input{
				Now: created.Add(time.Hour), Live: live, Wanted: wanted, Objects: objects,
			})
			if err != nil {
				t.Fatal(err)
			}
			compareText(t, "native deployment "+name, f)
		})
	}
}

// A change in the middle of a rollout goes on from the pods as they are: one of them runs the change before.
func TestNativeDeploymentHeld(t *testing.T) {
	live, objects := deploymentObjects("{}")
	wanted := live.DeepCopy()
	wanted.Spec.Template.Spec.Containers[0].Image = "db:3"
	for _, d := range []*appsv1.Deployment{live, wanted} {
		d.Spec.Paused, d.Annotations[native.HoldKey] = true, "1"
	}
	live.Spec.Template.Spec.Containers[0].Image = "db:2"
	data, err := revision.Encode(&live.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	stored := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}, Revision: 1}
	stored.Namespace, stored.Name, stored.UID = "shop", revision.Name("db", revision.Hash(data, nil)), "revision"
	stored.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(live, appsv1.SchemeGroupVersion.WithKind("Deployment")),
	}
	for _, o := range objects {
		switch of := o.(type) {
		case *appsv1.ReplicaSet:
			of.Spec.Template.Annotations = map[string]string{native.HoldKey: "true"}
		case *corev1.Pod:
			if of.Name == "db-2" {
				of.Labels[appsv1.ControllerRevisionHashLabelKey] = revision.Short(stored.Name)
				of.Spec.Containers[0].Image, of.Status.ContainerStatuses[0].Image = "db:2", "db:2"
			}
		}
	}
	f, err := forecast.Of(t.Context(), forecast.Input{
		Now: created.Add(time.Hour), Live: live, Wanted: wanted, Objects: append(objects, stored),
	})
	if err != nil {
		t.Fatal(err)
	}
	compareText(t, "native deployment held", f)
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
