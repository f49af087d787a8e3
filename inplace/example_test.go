package inplace_test

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// web is a template with one container, and the readiness gate that lets it be taken out of traffic.
func web(image, level string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
			Containers: []corev1.Container{{
				Name: "main", Image: image, Env: []corev1.EnvVar{{Name: "LEVEL", Value: level}},
			}},
		},
	}
}

// webPod runs web of nginx:1.
func webPod() *corev1.Pod {
	t := web("nginx:1", "info")
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Name = "web-0"
	pod.Labels[kruise.PodRevisionLabelKey] = "web-1"
	pod.Annotations = map[string]string{"team": "blue"}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:        "main",
		Image:       "docker.io/library/nginx:1",
		ImageID:     "docker.io/library/nginx@sha256:aaa",
		ContainerID: "containerd://0",
	}}
	return pod
}

func ExampleDiff_blocked() {
	_, err := inplace.Diff(web("nginx:1", "info"), web("nginx:2", "debug"), inplace.Policy{Env: inplace.EnvRestart})
	var blocked *inplace.BlockedError
	if errors.As(err, &blocked) {
		for _, b := range blocked.Blocks {
			fmt.Println(b.Path)
			fmt.Println(b.Why)
		}
	}
	// Output:
	// spec.containers[main].env[LEVEL].value
	// a container keeps its environment, but for values fed from labels and annotations
}

func ExampleNext_continue() {
	pod := webPod()
	pod.Labels[kruise.PodRevisionLabelKey] = "web-2"
	pod.Spec.Containers[0].Image = "nginx:2"
	pod.Annotations[kruise.InPlaceUpdateStateKey] = `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z",` +
		`"lastContainerStatuses":{"main":{"imageID":"docker.io/library/nginx@sha256:aaa"}},"updateImages":true}`
	pod.Status.Conditions[0].Status = corev1.ConditionFalse

	now := time.Date(2026, 11, 21, 12, 0, 10, 0, time.UTC)
	action, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, now)
	fmt.Println(action.Verdict, action.After, action.Notes[0].Text, err)

	pod.Status.ContainerStatuses[0].ImageID = "docker.io/library/nginx@sha256:bbb" // by the kubelet
	action, err = inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, now)
	fmt.Println(action.Verdict, action.Write.Subresource, err)
	// Output:
	// Wait 10m0s container main does not run image nginx:2 yet <nil>
	// Write status <nil>
}

func ExampleNext_emptyChange() {
	change, err := inplace.Diff(web("nginx:1", "info"), web("nginx:1", "info"), inplace.Policy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	// Only the revision differs: one write of the label, in traffic.
	action, err := inplace.Next(inplace.Update{Pod: webPod(), Change: change, Revision: "web-2"}, inplace.Policy{}, now)
	fmt.Println(change.Empty(), action.Verdict, action.Step, err)
	// No change is not an empty one.
	_, err = inplace.Next(inplace.Update{Pod: webPod(), Revision: "web-2"}, inplace.Policy{}, now)
	fmt.Println(err)
	// Output:
	// true Write Relabel <nil>
	// an update needs both a change and a revision
}

func ExampleNext_notStarted() {
	pod := webPod()
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending} // created, and not yet on a node
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	action, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, now)
	fmt.Println(action.Verdict, action.Notes[0].Code, err)

	pod.Status.Conditions = []corev1.PodCondition{{ // by the kubelet, ready or not
		Type: corev1.ContainersReady, Status: corev1.ConditionFalse,
	}}
	action, err = inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, now)
	fmt.Println(action.Verdict, action.Step, err)
	// Output:
	// Wait InPlaceNotStarted <nil>
	// Write Ready <nil>
}

func ExampleCompleted() {
	pod := webPod()
	pod.Annotations[kruise.InPlaceUpdateGraceKey] = `{"revision":"web-2","containerImages":{"main":"nginx:2"},"graceSeconds":30}`
	done, note := inplace.Completed(pod, inplace.Policy{})
	fmt.Println(done, note.Code)
	// Output: false InPlaceGracePeriod
}

func ExampleSameImage() {
	fmt.Println(inplace.SameImage("nginx", "docker.io/library/nginx:latest"))
	fmt.Println(inplace.SameImage("localhost:5000/nginx", "localhost:5000/nginx:1"))
	// Output:
	// true
	// false
}

func ExamplePlainHashes() {
	current, _, err := inplace.PlainHashes(&corev1.Container{Name: "main", Image: "nginx:1.15.1"})
	fmt.Println(current, err)
	// Output: 1154321047 <nil>
}

func ExampleProcessEnvHash() {
	c := &corev1.Container{Name: "main", Env: []corev1.EnvVar{{Name: "CONF", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['conf']"},
	}}}}
	hash, err := inplace.ProcessEnvHash(c, map[string]string{"PATH": "/bin", "CONF": "2"})
	fmt.Println(inplace.HasFedEnv(c), hash, err)
	same, err := inplace.EnvHash(c, nil, map[string]string{"conf": "2"})
	fmt.Println(same, err)
	// Output:
	// true 1760386424 <nil>
	// 1760386424 <nil>
}

func ExampleLaunchPriority() {
	c := &corev1.Container{Env: []corev1.EnvVar{{
		Name: kruise.ContainerLaunchBarrierEnvName, ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "p_10"},
		},
	}}}
	fmt.Println(inplace.LaunchPriority(c, nil))
	// Output: 10 true
}

func ExampleStateOf() {
	pod := webPod()
	pod.Annotations[kruise.InPlaceUpdateStateKey] = `{"revision":"web-2","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,"nextContainerImages":{"main":"nginx:2"}}`
	state, err := inplace.StateOf(pod, nil)
	fmt.Println(state.Revision, state.NextContainerImages, err)
	// Output: web-2 map[main:nginx:2] <nil>
}

func ExampleGraceOf() {
	pod := webPod()
	pod.Annotations[kruise.InPlaceUpdateGraceKey] = `{"revision":"web-2","containerImages":{"main":"nginx:2"},"graceSeconds":30}`
	grace, err := inplace.GraceOf(pod, nil)
	fmt.Println(grace.ContainerImages, grace.GraceSeconds, err)
	// Output: map[main:nginx:2] 30 <nil>
}
