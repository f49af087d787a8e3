package pub_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/pub"
)

func TestAvailable(t *testing.T) {
	digest := func(id string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Image, pod.Status.ContainerStatuses[0].ImageID = "reg.io/web@sha256:aa", id
		}
	}
	sidecar := func(state, current string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			annotation(kruise.SidecarSetInjectedListKey, "log,mesh")(pod)
			if state != "" {
				annotation(kruise.SidecarSetInPlaceUpdateStateKey, state)(pod)
			}
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: "proxy", Image: "proxy:2", Env: []corev1.EnvVar{{Name: kruise.SidecarInjectedEnvName, Value: "true"}},
			})
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: "proxy", Image: current, ImageID: "id-of-" + current,
			})
		}
	}
	state := `{"mesh":{"revision":"2","lastContainerStatuses":{"proxy":{"imageID":"id-of-proxy:1"}}}}`
	resizing := func(pod *corev1.Pod) {
		annotation(kruise.InPlaceUpdateStateKey,
			`{"revision":"r","updateResources":true,"containerBatchesRecord":[{"timestamp":"2026-11-22T12:00:00Z","containers":["main"]}]}`)(
			pod)
		pod.Spec.Containers[0].Resources = requests("cpu", "2")
		pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{}
	}
	cases := map[string]struct {
		why    string
		pod    *corev1.Pod
		resize bool
		want   bool
	}{
		"ready":     {"all is as it has to be", newPod("a"), false, true},
		"not ready": {"the condition is False", newPod("a", unready), false, false},
		"no condition": {
			why: "a new pod is not ready",
			pod: newPod("a", func(p *corev1.Pod) { p.Status.Conditions = nil }),
		},
		"pending": {
			why: "only running pods are",
			pod: newPod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		},
		"terminating": {"the pod is about to stop", newPod("a", terminating), false, false},
		"labelled": {
			why: "the user marks the pod", pod: newPod("a", label("unavailable-pod.kruise.io/x", "false")),
		},
		"digest": {
			why:  "the image runs",
			pod:  newPod("a", digest("docker-pullable://reg.io/web@sha256:aa")),
			want: true,
		},
		"another digest": {
			why: "the old image runs", pod: newPod("a", digest("reg.io/web@sha256:bb")),
		},
		"another repository": {
			why: "the same digest elsewhere is another image",
			pod: newPod("a", digest("reg.io/other@sha256:aa")),
		},
		"digest without a status": {
			why: "nothing runs yet",
			pod: newPod("a", digest(""), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }),
		},
		"digests end the question": {
			why:  "annotations are not asked where all images are digests",
			pod:  newPod("a", digest("reg.io/web@sha256:aa"), annotation(kruise.InPlaceUpdateGraceKey, "{}")),
			want: true,
		},
		"grace": {
			why: "the update has begun", pod: newPod("a", annotation(kruise.InPlaceUpdateGraceKey, "{}")),
		},
		"grace, older key": {
			why: "the update has begun",
			pod: newPod("a", annotation(kruise.InPlaceUpdateGraceKeyOld, "{}")),
		},
		"an unreadable state": {
			why: "it is not known to be done",
			pod: newPod("a", annotation(kruise.InPlaceUpdateStateKey, "{")),
		},
		"a later batch": {
			why: "images are left",
			pod: newPod("a", annotation(kruise.InPlaceUpdateStateKey, `{"nextContainerImages":{"main":"web:2"}}`)),
		},
		"being updated": {"the old image runs", newPod("a", halfUpdated), false, false},
		"sidecar, never updated": {
			why: "no state is a finished one", pod: newPod("a", sidecar("", "proxy:1")), want: true,
		},
		"sidecar, being updated": {"the old image runs", newPod("a", sidecar(state, "proxy:1")), false, false},
		"sidecar, updated":       {"the new image runs", newPod("a", sidecar(state, "proxy:2")), false, true},
		"sidecar, unreadable": {
			why: "it is not known to be done", pod: newPod("a", sidecar("{", "proxy:2")),
		},
		"sidecar, of another set": {
			why:  "sets that did not inject do not count",
			pod:  newPod("a", sidecar(strings.Replace(state, "mesh", "other", 1), "proxy:1")),
			want: true,
		},
		"resizing, not looked at": {
			why: "without resizes in place nodes report none", pod: newPod("a", resizing), want: true,
		},
		"resizing": {
			why: "the node has not resized the container yet", pod: newPod("a", resizing), resize: true,
		},
		"an image without a tag": {"no tag is latest", newPod("a", image("web")), false, true},
		"an old state and a new reason": {
			why: "a finished update stays finished",
			pod: newPod("a",
				annotation(kruise.InPlaceUpdateStateKey, `{"lastContainerStatuses":{"main":{"imageID":"web@sha256:0"}}}`)),
			want: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			policy := pub.Policy{}
			policy.Installed.Resize = c.resize
			if got := pub.Available(c.pod, policy); got != c.want {
				t.Errorf("%s: available is %v", c.why, got)
			}
		})
	}
}
