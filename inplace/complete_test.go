package inplace_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// recordedByUs is oneImage as we write it.
const recordedByUs = `{"revision":"web-2","updateTimestamp":"2026-11-21T11:59:50Z","lastContainerStatuses":{"c1":{"imageID":"id-of-app:1","containerID":"containerd://c1-0","image":"app:1"}},` +
	`"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T11:59:50Z","containers":["c1"]}]}`

// status changes the status of the first container.
func status(f func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { f(&p.Status.ContainerStatuses[0]) }
}

func annotation(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func TestCompletedImages(t *testing.T) {
	same := func(name string) func(*corev1.Pod) { // the image ID is that from before
		return status(func(s *corev1.ContainerStatus) { s.Image, s.ImageID = name, "id-of-app:1" })
	}
	started := func(at time.Duration) func(*corev1.Pod) {
		return status(func(s *corev1.ContainerStatus) { s.State.Running.StartedAt = metav1.NewTime(noon().Add(at)) })
	}
	again := status(func(s *corev1.ContainerStatus) { s.ContainerID, s.RestartCount = "containerd://c1-1", 1 })
	cases := map[string]struct {
		image string // in the spec; app:2 by default
		pod   []func(*corev1.Pod)
		want  string // code of the note, with a part of its text
	}{
		"other image ID: another image runs": {pod: []func(*corev1.Pod){stateText(oneImage)}},
		"same image ID: the old image runs": {
			pod:  []func(*corev1.Pod){stateText(oneImage), same("app:1")},
			want: "InPlaceImage c1 does not run image app:2 yet",
		},
		"no status: nothing is known": {
			pod:  []func(*corev1.Pod){stateText(oneImage), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }},
			want: "InPlaceImage c1 has no status yet",
		},
		"same image and tag: both tags are one image, and the node tells the new one": {
			pod: []func(*corev1.Pod){stateText(oneImage), same("app:2")},
		},
		"restarted: another container of the same image": {
			pod: []func(*corev1.Pod){stateText(recordedByUs), same("sha256:abc"), again},
		},
		"not restarted, unrecorded: it started before the write": {
			pod:  []func(*corev1.Pod){stateText(oneImage), same("sha256:abc"), started(-time.Hour)},
			want: "InPlaceImage app:2",
		},
		"other name of what runs: the container stops for it all the same": {
			image: "docker.io/library/app:1",
			pod:   []func(*corev1.Pod){stateText(recordedByUs), same("app:1")}, want: "InPlaceImage docker.io/library/app:1",
		},
		"digest of what runs: the container stops for it all the same": {
			image: "app:1@sha256:abc", want: "InPlaceImage app:1@sha256:abc",
			pod: []func(*corev1.Pod){
				stateText(strings.ReplaceAll(recordedByUs, "id-of-app:1", "app@sha256:abc")),
				status(func(s *corev1.ContainerStatus) { s.Image, s.ImageID = "app:1", "app@sha256:abc" }),
			},
		},
		"back to what runs: the node need do nothing": {
			image: "app:1",
			pod:   []func(*corev1.Pod){stateText(recordedByUs), same("sha256:abc")},
		},
		"back, but stopped: the node has begun, and starts it again": {
			image: "app:1",
			pod: []func(*corev1.Pod){
				stateText(recordedByUs), same("sha256:abc"), status(func(s *corev1.ContainerStatus) { s.State = pulling() }),
			},
			want: "InPlaceImage app:1",
		},
		"between: the old container is gone, and the new one not there": {
			pod: []func(*corev1.Pod){
				stateText(recordedByUs), status(func(s *corev1.ContainerStatus) { s.ImageID, s.ContainerID = "", "" }),
			},
			want: "InPlaceImage app:2",
		},
		"cannot be pulled: the reason is the node's": {
			pod: []func(*corev1.Pod){
				stateText(recordedByUs), same("app:1"), status(func(s *corev1.ContainerStatus) { s.State = pulling() }),
			},
			want: "InPlaceImage app:2 yet: ImagePullBackOff: no such image",
		},
		"first pull: the container has never run, and does not yet": {
			pod: []func(*corev1.Pod){
				stateText(`{"lastContainerStatuses":{"c1":{"image":"app:1"}}}`),
				status(func(s *corev1.ContainerStatus) { s.ImageID, s.ContainerID, s.State = "", "", pulling() }),
			},
			want: "InPlaceImage app:2",
		},
		"container is unknown: a container that the pod does not have is not waited for": {
			pod: []func(*corev1.Pod){stateText(strings.ReplaceAll(oneImage, "c1", "c9"))},
		},
		"first of two: one reason is enough, and always the same": {
			pod: []func(*corev1.Pod){
				stateText(`{"lastContainerStatuses":{"c1":{"imageID":"id-of-app:1"},"c0":{"imageID":"x"}}}`), same("app:1"),
				func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container("c0", "app:1")) },
			},
			want: "InPlaceImage c0",
		},
		"more to come: later batches are part of it": {
			pod:  []func(*corev1.Pod){stateText(`{"nextContainerImages":{"c1":"app:3"}}`)},
			want: "InPlaceBatch",
		},
		"grace: the change is not written yet": {
			pod:  []func(*corev1.Pod){annotation(kruise.InPlaceUpdateGraceKey, "{}")},
			want: "InPlaceGracePeriod",
		},
		"empty grace: the key counts": {
			pod:  []func(*corev1.Pod){annotation(kruise.InPlaceUpdateGraceKeyOld, "")},
			want: "InPlaceGracePeriod",
		},
		"old name: an older release wrote it": {
			pod:  []func(*corev1.Pod){underWay, annotation(kruise.InPlaceUpdateStateKeyOld, oneImage), same("app:1")},
			want: "InPlaceImage",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(template(container("c1", "app:2")), "web-2")
			if tc.image != "" {
				pod.Spec.Containers[0].Image = tc.image
			}
			for _, f := range tc.pod {
				f(pod)
			}
			check(t, pod, inplace.Policy{}, tc.want)
		})
	}
}

func pulling() corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "ImagePullBackOff", Message: "no such image",
	}}
}

// check compares with the code of a note and a part of its text; empty for a pod that is complete.
func check(t *testing.T, pod *corev1.Pod, r inplace.Policy, want string) {
	t.Helper()
	done, n := inplace.Completed(pod, r)
	code, text, _ := strings.Cut(want, " ")
	if done != (want == "") || n.Code != code || !strings.Contains(n.Text, text) || (n.Object == "") != done {
		t.Errorf("want %q, got %v, %+v", want, done, n)
	}
}

// daemon writes what a node daemon tells of the pod.
func daemon(t *testing.T, change func(*kruise.RuntimeContainerMetaSet)) func(*corev1.Pod) {
	t.Helper()
	return func(pod *corev1.Pod) {
		set := kruise.RuntimeContainerMetaSet{}
		for i := range pod.Spec.Containers {
			plain, _, err := inplace.PlainHashes(&pod.Spec.Containers[i])
			if err != nil {
				t.Fatal(err)
			}
			env, err := inplace.EnvHash(&pod.Spec.Containers[i], pod.Labels, pod.Annotations)
			if err != nil {
				t.Fatal(err)
			}
			s := &pod.Status.ContainerStatuses[i]
			set.Containers = append(set.Containers, kruise.RuntimeContainerMeta{
				Name: s.Name, ContainerID: s.ContainerID, RestartCount: s.RestartCount,
				Hashes: kruise.RuntimeContainerHashes{PlainHash: plain, ExtractedEnvFromMetadataHash: env},
			})
		}
		if change != nil {
			change(&set)
		}
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.RuntimeContainerMetaKey, encoded(t, set))
	}
}

func TestCompletedByDaemon(t *testing.T) {
	env := `{"lastContainerStatuses":null,"updateEnvFromMetadata":true}`
	same := status(func(s *corev1.ContainerStatus) { s.Image, s.ImageID = "sha256:abc", "id-of-app:1" })
	cases := map[string]struct {
		pod  []func(*corev1.Pod)
		want string
	}{
		"image under another tag: the daemon knows what each container was started with": {
			pod: []func(*corev1.Pod){stateText(oneImage), same, daemon(t, nil)},
		},
		"an older kubelet's hash: it hashes the whole container": {
			pod: []func(*corev1.Pod){stateText(oneImage), same, func(p *corev1.Pod) {
				daemon(t, func(s *kruise.RuntimeContainerMetaSet) {
					for i := range s.Containers {
						_, s.Containers[i].Hashes.PlainHash, _ = inplace.PlainHashes(&p.Spec.Containers[i])
					}
				})(p)
			}},
		},
		"another image's hash: the container was started with something else": {
			pod: []func(*corev1.Pod){stateText(oneImage), same, daemon(t, func(s *kruise.RuntimeContainerMetaSet) {
				s.Containers[0].Hashes.PlainHash++
			})},
			want: "InPlaceImage app:2",
		},
		"a hash of an older container: the daemon lags behind": {
			pod: []func(*corev1.Pod){stateText(oneImage), same, daemon(t, func(s *kruise.RuntimeContainerMetaSet) {
				s.Containers[0].ContainerID = "old"
			})},
			want: "InPlaceImage app:2",
		},
		"the same container: it was asked before the kubelet looked": {
			pod:  []func(*corev1.Pod){stateText(recordedByUs), same, daemon(t, nil)},
			want: "InPlaceImage app:2",
		},
		"variables: all containers have theirs": {pod: []func(*corev1.Pod){stateText(env), daemon(t, nil)}},
		"variables, from before: the container is still the old one": {
			pod: []func(*corev1.Pod){stateText(env), daemon(t, func(s *kruise.RuntimeContainerMetaSet) {
				s.Containers[0].Hashes.ExtractedEnvFromMetadataHash++
			})},
			want: "InPlaceEnv c1 runs with the environment from before",
		},
		"variables, unknown: 0 is what is not known yet": {
			pod: []func(*corev1.Pod){stateText(env), daemon(t, func(s *kruise.RuntimeContainerMetaSet) {
				s.Containers[1].Hashes.ExtractedEnvFromMetadataHash = 0
			})},
			want: "InPlaceEnv c2",
		},
		"variables, no daemon: no daemon restarts the container": {
			pod:  []func(*corev1.Pod){stateText(env), func(p *corev1.Pod) { p.Spec.NodeName = "node-7" }},
			want: "InPlaceNoDaemon node-7",
		},
		"variables, unreadable: what cannot be read is never complete": {
			pod:  []func(*corev1.Pod){stateText(env), annotation(kruise.RuntimeContainerMetaKey, "{")},
			want: "InPlaceUnreadable " + kruise.RuntimeContainerMetaKey,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := running(template(container("c1", "app:2", fed("APP", "metadata.labels['app']")), container("c2", "app:2")),
				"web-2")
			for _, f := range tc.pod {
				f(pod)
			}
			check(t, pod, inplace.Policy{}, tc.want)
		})
	}
}

// TestCompletedResources: a resize is done when the node tells the same amounts of what was resized.
func TestCompletedResources(t *testing.T) {
	c1 := func(p *corev1.Pod) *corev1.ContainerStatus { return &p.Status.ContainerStatuses[0] }
	cases := map[string]struct {
		pod   func(*corev1.Pod)
		rules inplace.Policy
		want  string
	}{
		"done: amounts are what counts, not how they are written": {
			pod: func(p *corev1.Pod) { c1(p).Resources.Requests = amounts("cpu", "800000m", "memory", "1Gi") },
		},
		"cpu: the node has not changed it": {
			pod:  func(p *corev1.Pod) { c1(p).Resources.Requests = amounts("cpu", "1", "memory", "1Gi") },
			want: "InPlaceResize c1 has its resources from before",
		},
		"limit: limits count as requests do": {
			pod:  func(p *corev1.Pod) { c1(p).Resources.Limits = nil },
			want: "InPlaceResize c1",
		},
		"ignored: the rules say so": {
			pod:   func(p *corev1.Pod) { c1(p).Resources = nil },
			rules: inplace.Policy{IgnoreResources: true},
		},
		"no resources in status: the kubelet has not said anything": {
			pod:  func(p *corev1.Pod) { c1(p).Resources = nil },
			want: "InPlaceResize c1 has no resources in its status yet",
		},
		"an image besides: both must be done": {pod: func(p *corev1.Pod) {
			stateText(strings.Replace(oneImage, `"updateImages"`, `"updateResources":true,"updateImages"`, 1))(p)
			c1(p).Resources.Requests = amounts("cpu", "1", "memory", "1Gi")
		}, want: "InPlaceResize c1"},
		"could not: the reason is the node's": {pod: func(p *corev1.Pod) {
			c1(p).Resources.Limits = nil
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: corev1.PodReasonError, Message: "no cgroup",
			})
		}, want: "InPlaceResize c1 could not be resized yet: no cgroup"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sized := container("c1", "app:2", requests("cpu", "800", "memory", "1Gi"), limits("memory", "2Gi"))
			pod := running(template(sized, container("c2", "app:2", requests("cpu", "1"))), "web-2")
			stateText(resized)(pod)
			tc.pod(pod)
			check(t, pod, tc.rules, tc.want)
		})
	}
}
