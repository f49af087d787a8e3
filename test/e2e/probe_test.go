//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// probed is a pod whose probes a daemon runs.
type probed struct {
	*deployed
	*v1alpha1.PodProbeMarker
	// shell runs in the container that is probed.
	shell func(command string) string
}

const idleCondition = "game.example.com/idle"

// newProbed makes a pod with a readiness gate, a command that looks for a file, and a page.
func (m *deployed) newProbed(t *testing.T) *probed {
	t.Helper()
	m.pushNginx(t)
	p := &probed{
		deployed:       m,
		PodProbeMarker: &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace(t), Name: "game"}},
	}
	p.shell = func(command string) string {
		said, err := m.Kubectl(t.Context(), "exec", "-n", p.PodProbeMarker.Namespace, "game", "-c", "server", "--", "sh",
			"-c", command)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return said
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.PodProbeMarker.Namespace, Name: "game", Labels: map[string]string{"app": "game"},
	}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: idleCondition}}
	pod.Spec.Containers = []corev1.Container{{
		Name: "server", Image: "nginx:1.28", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
	}}
	p.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
	label := func(key, good, bad string) []v1alpha1.ProbeMarkerPolicy {
		return []v1alpha1.ProbeMarkerPolicy{
			{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{key: good}}, {
				State: v1alpha1.ProbeFailed, Labels: map[string]string{key: bad},
			},
		}
	}
	p.Spec.Probes = []v1alpha1.PodContainerProbe{
		{Name: "idle", ContainerName: "server", PodConditionType: idleCondition, MarkerPolicy: label("idle", "yes", "no")},
		{Name: "page", ContainerName: "server", MarkerPolicy: label("page", "up", "down")},
	}
	p.Spec.Probes[0].Probe.Exec = &corev1.ExecAction{Command: []string{"sh", "-c", "test -e /idle && echo no players"}}
	p.Spec.Probes[1].Probe.HTTPGet = &corev1.HTTPGetAction{Path: "/index.html", Port: intstr.FromString("http")}
	for _, o := range []client.Object{p.PodProbeMarker, pod} {
		if err := m.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// shows waits until the pod has labels, and is ready or not.
func (p *probed) shows(t *testing.T, idle, page string, isReady bool) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	eventually(t, func(ctx context.Context) error {
		if err := p.Client.Get(ctx,
			types.NamespacedName{Namespace: p.PodProbeMarker.Namespace, Name: "game"}, pod); err != nil {
			return err
		}
		if pod.Labels["idle"] != idle || pod.Labels["page"] != page || ready(pod) != isReady {
			return fmt.Errorf("labels %v, ready %t, conditions %+v", pod.Labels, ready(pod), pod.Status.Conditions)
		}
		return nil
	})
	return pod
}

// testProbes: a command and a page flip labels, and a readiness gate that the kubelet heeds. The results of a container
// end with it, and those of a marker are no longer looked for when it is deleted.
func (m *deployed) testProbes(t *testing.T) {
	p := m.newProbed(t)
	p.shows(t, "no", "up", false)
	p.shell("touch /idle && rm /usr/share/nginx/html/index.html")
	was := p.shows(t, "yes", "down", true)
	for _, c := range was.Status.Conditions {
		if c.Type == idleCondition && strings.TrimSpace(c.Message) != "no players" {
			t.Errorf("condition %+v", c)
		}
	}
	begin := time.Now()
	p.shell("rm /idle")
	p.shows(t, "no", "down", false)
	t.Logf("a label and the readiness followed a command within %s", time.Since(begin).Round(time.Second/10))
	p.shell("touch /idle")
	p.shows(t, "yes", "down", true)

	// The file goes with the container, and the page comes back. The command may end with the container, which is no
	// error.
	said, err := m.Kubectl(t.Context(), "exec", "-n", p.PodProbeMarker.Namespace, "game", "-c", "server", "--",
		"kill", "1")
	t.Logf("killed the container: %q, %v", said, err)
	p.shows(t, "no", "up", false)
	is := &corev1.Pod{}
	eventually(t, func(ctx context.Context) error { // the daemon may know the new container before the kubelet reports it
		if err := p.Client.Get(ctx, client.ObjectKeyFromObject(was), is); err != nil {
			return err
		}
		if is.UID != was.UID || is.Status.ContainerStatuses[0].RestartCount != 1 {
			return fmt.Errorf("pod %s became %s with %+v", was.UID, is.UID, is.Status.ContainerStatuses)
		}
		return nil
	})
	t.Log("another container started without a result")

	if err := m.Client.Delete(t.Context(), p.PodProbeMarker); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(p.PodProbeMarker),
			&v1alpha1.PodProbeMarker{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the marker is there: %w", err)
		}
		return nil
	})
	probes := &v1alpha1.NodePodProbe{}
	if err := m.Client.Get(t.Context(), types.NamespacedName{Name: is.Spec.NodeName}, probes); err != nil {
		t.Fatal(err)
	}
	for _, asked := range probes.Spec.PodProbes {
		if asked.UID == string(is.UID) {
			t.Errorf("the node still probes %+v", asked)
		}
	}
	t.Log("the marker is gone, and the node does not probe the pod")
}

// testProbeDocument types what the page of PodProbeMarkers says about its sample. What kubectl prints of the pod is
// what the page shows.
func (m *deployed) testProbeDocument(t *testing.T) {
	const path = "../../docs/kinds/podprobemarker.md"
	m.pushNginx(t)
	namespace := m.Namespace(t)
	for _, words := range typed(t, path) {
		line := strings.Join(words, " ")
		if words[0] == "delete" {
			return // with the namespace; what follows is about trouble
		}
		eventually(t, func(ctx context.Context) error {
			said, err := m.Kubectl(ctx, append(words, "-n", namespace)...)
			switch {
			case err != nil:
				return fmt.Errorf("kubectl %s: %w\n%s", line, err, said)
			case strings.Contains(line, "custom-columns"):
				return isShown(path, said)
			case words[0] == "events" && !strings.Contains(said, "KruiseProbeSucceeded"):
				return fmt.Errorf("no event of a probe:\n%s", said)
			}
			return nil
		})
	}
	t.Errorf("%s does not delete its sample", path)
}
