package containerrestart_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/write"
)

// webPod runs one container on node-1.
func webPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "7"},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", ContainerID: "containerd://a"}},
		},
	}
}

func again() *appsv1beta1.ContainerRecreateRequest {
	return &appsv1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "again", UID: "8", ResourceVersion: "1", CreationTimestamp: metav1.NewTime(time.Unix(0, 0)),
		},
		Spec: appsv1beta1.ContainerRecreateRequestSpec{
			PodName: "web", Containers: []appsv1beta1.ContainerRecreateRequestContainer{{Name: "main"}},
		},
	}
}

func ExampleAdmit() {
	r, faults := containerrestart.Admit(again(), webPod(), &corev1.Node{})
	fmt.Println(r.Labels["crr.apps.kruise.io/node-name"], r.Spec.Containers[0].StatusContext.ContainerID, len(faults))
	_, faults = containerrestart.Admit(again(), nil, nil)
	fmt.Println(faults.ToAggregate())
	// Output:
	// node-1 containerd://a 0
	// spec.podName: Not found: "web"
}

func ExampleCheck() {
	hasty := again()
	hasty.Spec.ActiveDeadlineSeconds = new(int64)
	fmt.Println(containerrestart.Check(hasty).ToAggregate())
	// Output: spec.activeDeadlineSeconds: Invalid value: 0: must be at least 3
}

func ExampleCheckUpdate() {
	changed := again()
	changed.Spec.PodName = "other"
	fmt.Println(containerrestart.CheckUpdate(again(), changed).ToAggregate())
	// Output: spec: Forbidden: spec of ContainerRecreateRequest is immutable
}

func ExampleCheckGrace() {
	held := again()
	held.Status.Conditions = []metav1.Condition{{
		Type: appsv1beta1.ContainerRecreateRequestPreRecreateGrace, Status: metav1.ConditionTrue,
	}}
	fmt.Println(containerrestart.CheckGrace(held, again()).ToAggregate())
	// Output: metadata.annotations[crr.apps.kruise.io/unready-acquired]: Forbidden: the annotation is immutable
}

func ExampleSupervise() {
	r, _ := containerrestart.Admit(again(), webPod(), &corev1.Node{})
	plan := containerrestart.Supervise(containerrestart.Input{Request: r, Pod: webPod(), Now: time.Unix(20, 0)})
	fmt.Println(plan.Empty(), plan.RequeueAfter)
	plan = containerrestart.Supervise(containerrestart.Input{Request: r, Pod: webPod(), Now: time.Unix(60, 0)})
	fmt.Println(statusOf(plan.Write).Phase, statusOf(plan.Write).Message)
	// Output:
	// true 40s
	// Completed daemon has not responded for a long time
}

func ExampleNext() {
	r, _ := containerrestart.Admit(again(), webPod(), &corev1.Node{})
	work := containerrestart.Work{
		Request: r, Now: time.Unix(1, 0),
		Containers: []containerrestart.Container{{Name: "main", ID: "containerd://a", State: containerrestart.StateRunning}},
	}
	action := containerrestart.Next(work)
	fmt.Println(action.Verdict, statusOf(action.Write).Phase)
	r.Status = statusOf(action.Write)
	action = containerrestart.Next(work)
	fmt.Println(action.Verdict, action.Kill.ContainerID, action.Kill.Grace)
	// Output:
	// Write Recreating
	// Kill containerd://a 30s
}

// statusOf returns the status that a write brings.
func statusOf(w *write.Write) appsv1beta1.ContainerRecreateRequestStatus {
	return w.Body.(containerrestart.StatusPatch).Status
}

func ExampleStatusPatch_Data() {
	r, _ := containerrestart.Admit(again(), webPod(), &corev1.Node{})
	plan := containerrestart.Supervise(containerrestart.Input{Request: r, Now: time.Unix(60, 0)})
	patch, err := plan.Write.Data()
	fmt.Println(string(patch), err)
	// Output: {"metadata":{"resourceVersion":"1","uid":"8"},"status":{"completionTime":"1970-01-01T00:01:00Z","message":"pod has gone","phase":"Completed"}} <nil>
}

func ExamplePlan_Empty() {
	fmt.Println(containerrestart.Plan{RequeueAfter: time.Minute}.Empty(), containerrestart.Plan{Delete: true}.Empty())
	// Output: true false
}

func ExampleKill_StopWithin() {
	kill := containerrestart.Kill{Grace: 10 * time.Second}
	fmt.Println(kill.StopWithin(4*time.Second), kill.StopWithin(10*time.Second))
	// Output: 6s 2s
}

func ExampleQueue() {
	first, second := again(), again()
	first.Labels = map[string]string{appsv1beta1.ContainerRecreateRequestPodUIDKey: "7"}
	second.Name, second.Labels = "once-more", first.Labels
	second.Status.Phase = appsv1beta1.ContainerRecreateRequestRecreating
	for _, r := range containerrestart.Queue("7", []*appsv1beta1.ContainerRecreateRequest{first, second}) {
		fmt.Println(r.Name)
	}
	// Output:
	// once-more
	// again
}

func ExampleRuntimeOf() {
	r, _ := containerrestart.Admit(again(), webPod(), &corev1.Node{})
	fmt.Println(containerrestart.RuntimeOf(r, []string{"containerd"}))
	_, err := containerrestart.RuntimeOf(r, []string{"cri-o"})
	fmt.Println(err)
	// Output:
	// containerd <nil>
	// not found runtime service for containerd in daemon
}

func ExampleReadContainer() {
	c := containerrestart.ReadContainer("containerd://a",
		map[string]string{"io.kubernetes.container.name": "main"},
		map[string]string{"io.kubernetes.container.restartCount": "3", "io.kubernetes.container.hash": "44ce7357"})
	fmt.Println(c.Name, c.RestartCount, c.Hash)
	// Output: main 3 1154380631
}

// confPod is a pod of a CloneSet whose container takes CONF from an annotation that was changed in place.
func confPod() *corev1.Pod {
	pod := webPod()
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Controller: ptr.To(true),
	}}
	pod.Annotations = map[string]string{"conf": "2"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONF", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['conf']"},
	}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "InPlaceUpdateReady", Status: corev1.ConditionFalse}}
	return pod
}

func ExampleDescribe() {
	d, err := containerrestart.Describe(containerrestart.View{
		Pod: confPod(),
		Containers: []containerrestart.Container{{
			Name: "main", ID: "containerd://a", State: containerrestart.StateRunning, Hash: 1154321047,
		}},
		Env:          true,
		Environments: map[string]map[string]string{"containerd://a": {"CONF": "1"}},
	})
	fmt.Println(d.Annotation, err)
	fmt.Println("restart", d.Restart[0].Container)
	// Output:
	// {"containers":[{"name":"main","containerID":"containerd://a","restartCount":0,"hashes":{"plainHash":1154321047,"extractedEnvFromMetadataHash":1747005958}}]} <nil>
	// restart main
}

func ExampleStale() {
	was, is := confPod(), confPod()
	is.Annotations["conf"] = "3"
	fmt.Println(containerrestart.Stale(was, is, true))
	// Output: true
}
