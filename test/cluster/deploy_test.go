//go:build envtest

package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// A deployment that does not become ready ends with what its pods wait for, not with the timeout alone.
func TestDeployExplains(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	namespace := c.Namespace(t)
	if _, err := c.Kubectl(t.Context(), "-n", namespace, "create", "deployment", "web", "--image=web"); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1"},
		Spec:       corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "main", Image: "any"}}},
	}
	if err := c.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerError", Message: "seccomp is not supported"},
	}}}
	if err := c.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	warning := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "sandbox"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod.Name},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox", Message: "no bridge",
	}
	if err := c.Client.Create(t.Context(), warning); err != nil {
		t.Fatal(err)
	}
	kubectl := c.Programs(t, binaries.ControlPlane)["kubectl"]
	deploy := exec.CommandContext(t.Context(), "../../hack/deploy", "wait", namespace, "1s", "deployment/web")
	deploy.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
	output, err := deploy.CombinedOutput()
	if err == nil {
		t.Errorf("a deployment without available pods is ready:\n%s", output)
	}
	t.Logf("%s", output)
	for _, want := range []string{
		"timed out", "web-1", "CreateContainerError", "seccomp is not supported", "FailedCreatePodSandBox", "no bridge",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the output has no %q", want)
		}
	}
}
