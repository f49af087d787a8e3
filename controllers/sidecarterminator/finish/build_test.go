package finish_test

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

type request = v1beta1.ContainerRecreateRequest

const (
	killEnv   = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
	imageEnv  = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
	ignoreEnv = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"

	never     = corev1.RestartPolicyNever
	onFailure = corev1.RestartPolicyOnFailure
	always    = corev1.RestartPolicyAlways
)

// at is so many seconds after the main containers ended.
func at(seconds int) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func stamp(seconds int) metav1.Time { return metav1.NewTime(at(seconds)) }

// part is a container with its state.
type part struct {
	spec   corev1.Container
	status *corev1.ContainerStatus
}

func newPod(policy corev1.RestartPolicy, parts ...part) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "job", UID: "u1", ResourceVersion: "5"},
		Spec:       corev1.PodSpec{NodeName: "n1", RestartPolicy: policy},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, one := range parts {
		p.Spec.Containers = append(p.Spec.Containers, one.spec)
		if one.status != nil {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, *one.status)
		}
	}
	return p
}

func mainOf(name string, state corev1.ContainerState) part {
	return part{corev1.Container{Name: name, Image: "main:1"}, status(name, state)}
}

// sidecar has variables of these names: true, or an image where it is about one.
func sidecar(name string, state corev1.ContainerState, env ...string) part {
	p := part{corev1.Container{Name: name, Image: "sidecar:1"}, status(name, state)}
	for _, e := range env {
		value := "true"
		if e == imageEnv {
			value = "exit:1"
		}
		p.spec.Env = append(p.spec.Env, corev1.EnvVar{Name: e, Value: value})
	}
	return p
}

func status(name string, state corev1.ContainerState) *corev1.ContainerStatus {
	return &corev1.ContainerStatus{Name: name, State: state, ContainerID: "fake://" + name}
}

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

func waitingFor(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func ended(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: stamp(0)}}
}

// unstarted has a container that never ran.
func (p part) unstarted() part {
	p.status.ContainerID = ""
	return p
}

func realNode() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}} }

func virtualNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"type": "virtual-kubelet"}}}
}

// made is a request for containers, created some seconds after the end of the main ones.
func made(names ...string) *request {
	r := &request{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "sidecar-termination-u1", UID: "r1", CreationTimestamp: stamp(1),
	}}
	for _, name := range names {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: name})
	}
	return r
}

// over has a request ended, with its containers in these phases.
func over(r *request, seconds int, message string, phases ...v1beta1.ContainerRecreateRequestPhase) *request {
	end := stamp(seconds)
	r.Status.Phase, r.Status.CompletionTime, r.Status.Message = v1beta1.ContainerRecreateRequestCompleted, &end, message
	for i, p := range phases {
		r.Status.ContainerRecreateStates = append(r.Status.ContainerRecreateStates,
			v1beta1.ContainerRecreateRequestContainerRecreateState{
				Name: r.Spec.Containers[i].Name, Phase: p,
			})
	}
	return r
}

func codes(notes []note.Note) []string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Code+" "+n.Object)
	}
	return all
}

func jsonOf(o any) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(text)
}
