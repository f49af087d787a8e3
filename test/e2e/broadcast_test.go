//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

const broadcastDocument = "../../docs/kinds/broadcastjob.md"

// testBroadcastJob runs jobs on three nodes: the sample of the document, and one for which a node is cordoned, another
// fails, and the cordoned one joins in the middle. What kubectl prints is what the document shows.
func (m *deployed) testBroadcastJob(t *testing.T) {
	m.Push(t, image.Spec{Name: "busybox:1.36"})
	t.Run("sample", m.testBroadcastSample)
	t.Run("nodes", m.testBroadcastNodes)
}

// testBroadcastSample types what the document says.
func (m *deployed) testBroadcastSample(t *testing.T) {
	namespace := m.Namespace(t)
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "check-disks"}}
	for _, words := range typed(t, broadcastDocument) {
		line := strings.Join(words, " ")
		said, err := m.Kubectl(t.Context(), append(words, "-n", namespace)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", line, err, said)
		}
		switch {
		case words[0] == "apply":
			m.ends(t, job)
		case line == "get bcj check-disks":
			shown(t, broadcastDocument, said)
		case words[0] == "describe" &&
			(!strings.Contains(said, "SuccessfulCreate") || !strings.Contains(said, "JobComplete")):
			t.Errorf("no events:\n%s", said)
		case words[0] == "delete":
			return // what follows is about trouble
		}
	}
}

// testBroadcastNodes fails on the first node, runs on the second, and is cordoned out of the third until the second has
// its pod.
func (m *deployed) testBroadcastNodes(t *testing.T) {
	var nodes corev1.NodeList
	if err := m.Client.List(t.Context(), &nodes); err != nil || len(nodes.Items) != 3 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	fails, runs, joins := nodes.Items[0].Name, nodes.Items[1].Name, nodes.Items[2].Name
	kubectl := func(ctx context.Context, arguments ...string) {
		if said, err := m.Kubectl(ctx, arguments...); err != nil {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, said)
		}
	}
	defer kubectl(context.WithoutCancel(t.Context()), "uncordon", joins)
	kubectl(t.Context(), "cordon", joins)
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace(t), Name: "probe"}}
	job.Spec.FailurePolicy.Type = v1beta1.FailurePolicyTypeContinue
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "probe", Image: "busybox:1.36",
		Command: []string{"sh", "-c", fmt.Sprintf("case $NODE in %s) exit 1;; %s) sleep 5;; esac", fails, runs)},
		Env: []corev1.EnvVar{{
			Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}},
		}},
	}}}
	if err := m.Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	m.until(t, job, func() error {
		if s := job.Status; s.Desired != 2 || s.Failed != 1 || s.Active != 1 {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	kubectl(t.Context(), "uncordon", joins)
	m.ends(t, job)
	said, err := m.Kubectl(t.Context(), "get", "bcj", "probe", "-n", job.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	shown(t, broadcastDocument, said)
	var pods corev1.PodList
	if err := m.Client.List(t.Context(), &pods, client.InNamespace(job.Namespace)); err != nil {
		t.Fatal(err)
	}
	want := map[string]corev1.PodPhase{fails: corev1.PodFailed, runs: corev1.PodSucceeded, joins: corev1.PodSucceeded}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != want[pod.Spec.NodeName] {
			t.Errorf("pod %s on %s is %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
		}
		delete(want, pod.Spec.NodeName)
	}
	if len(want) > 0 {
		t.Errorf("no pods on %v", want)
	}
}

func (m *deployed) until(t *testing.T, job *v1beta1.BroadcastJob, check func() error) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		return check()
	})
}

// ends waits for the end of a job.
func (m *deployed) ends(t *testing.T, job *v1beta1.BroadcastJob) {
	t.Helper()
	m.until(t, job, func() error {
		if job.Status.Phase != v1beta1.PhaseCompleted {
			return fmt.Errorf("status %+v", job.Status)
		}
		return nil
	})
}
