package containerrestart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
)

func TestReadContainer(t *testing.T) {
	cases := map[string]struct {
		why                 string
		labels, annotations map[string]string
		want                containerrestart.Container
	}{
		"nothing": {why: "a container that no kubelet made"},
		"all": {
			why: "what kubelets write",
			labels: map[string]string{
				"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "shop", "io.kubernetes.pod.uid": "u1",
				"io.kubernetes.container.name": "app",
			},
			annotations: map[string]string{
				"io.kubernetes.container.hash": "44cdba77", "io.kubernetes.container.restartCount": "3",
				"io.kubernetes.container.ports":          `[{"name":"web","containerPort":8080,"protocol":"TCP"}]`,
				"io.kubernetes.container.preStopHandler": `{"exec":{"command":["sync"]}}`,
				"io.kubernetes.pod.deletionGracePeriod":  "5", "io.kubernetes.pod.terminationGracePeriod": "30",
			},
			want: containerrestart.Container{
				Name:             "app",
				RestartCount:     3,
				Hash:             1154333303,
				Pod:              containerrestart.Pod{Namespace: "shop", Name: "web", UID: "u1"},
				PreStop:          &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sync"}}},
				Ports:            []corev1.ContainerPort{{Name: "web", ContainerPort: 8080, Protocol: "TCP"}},
				TerminationGrace: ptr.To[int64](30),
				DeletionGrace:    ptr.To[int64](5),
			},
		},
		"unreadable": {
			why: "it is as good as absent",
			annotations: map[string]string{
				"io.kubernetes.container.hash":             "xyz",
				"io.kubernetes.container.restartCount":     "99999999999",
				"io.kubernetes.container.ports":            "[]",
				"io.kubernetes.container.preStopHandler":   "{",
				"io.kubernetes.pod.deletionGracePeriod":    "1.5",
				"io.kubernetes.pod.terminationGracePeriod": "",
			},
		},
		"empty hook": {
			why:         "a hook that does nothing is none",
			annotations: map[string]string{"io.kubernetes.container.preStopHandler": "{}"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.ID = "containerd://1"
			if diff := cmp.Diff(tc.want,
				containerrestart.ReadContainer("containerd://1", tc.labels, tc.annotations)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func TestRuntimeOf(t *testing.T) {
	ids := func(ids ...string) *request {
		return admitted(func(r *request) {
			for i, id := range ids {
				r.Spec.Containers[i].StatusContext.ContainerID = id
			}
		})
	}
	cases := map[string]struct {
		request   *request
		want, err string
	}{
		"one": {request: admitted(), want: "containerd"},
		"no context": {
			request: admitted(func(r *request) { r.Spec.Containers[1].StatusContext = nil }),
			err:     "no statusContext or empty containerID in log container",
		},
		"empty": {request: ids(""), err: "no statusContext or empty containerID in app container"},
		"unparsable": {
			request: ids("app-0"), err: "failed to parse containerID app-0 in app container: it is not of the form runtime://id",
		},
		"no runtime": {
			request: ids("://app-0"),
			err:     "failed to parse containerID ://app-0 in app container: it is not of the form runtime://id",
		},
		"different": {
			request: ids("containerd://a", "cri-o://b"), err: "has different runtime types containerd, cri-o in Pod",
		},
		"not known": {request: ids("docker://a", "docker://b"), err: "not found runtime service for docker in daemon"},
		"no container": {
			request: admitted(func(r *request) { r.Spec.Containers = []appsv1beta1.ContainerRecreateRequestContainer{} }),
			err:     "not found runtime service for  in daemon",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := containerrestart.RuntimeOf(tc.request, []string{"cri-o", "containerd"})
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
