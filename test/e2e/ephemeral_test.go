//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

const ephemeralDocument = "../../docs/kinds/ephemeraljob.md"

// testEphemeralJob types what the document says: containers run to their end in three pods, which go on. What kubectl
// prints at the end is what the document shows.
func (m *deployed) testEphemeralJob(t *testing.T) {
	m.Push(t, image.Spec{Name: "busybox:1.36"})
	namespace := m.Namespace(t)
	job := &v1alpha1.EphemeralJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "look-around"}}
	until := func(phase v1alpha1.EphemeralJobPhase) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			if err := m.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
				return err
			}
			if job.Status.Phase != phase || job.Status.Matches != 3 {
				return fmt.Errorf("status %+v", job.Status)
			}
			return nil
		})
	}
	var before map[string]types.UID
	for _, words := range typed(t, ephemeralDocument) {
		line := strings.Join(words, " ")
		said, err := m.Kubectl(t.Context(), append(words, "-n", namespace)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", line, err, said)
		}
		switch {
		case words[0] == "apply":
			until(v1alpha1.EphemeralJobPaused)
			before = m.idling(t, namespace, 0)
		case words[0] == "patch":
			until(v1alpha1.EphemeralJobSucceeded)
		case line == "get ejob look-around":
			shown(t, ephemeralDocument, said)
		case words[0] == "describe" && !strings.Contains(said, "JobSucceeded"):
			t.Errorf("no event:\n%s", said)
		case words[0] == "delete":
			return // what follows is about trouble
		}
		if words[0] == "describe" {
			for name, uid := range m.idling(t, namespace, 1) {
				if before[name] != uid {
					t.Errorf("pod %s is another one", name)
				}
			}
		}
	}
}

// idling waits for three ready pods that have never restarted, each with as many ephemeral containers that exited with
// 0, and returns their UIDs.
func (m *deployed) idling(t *testing.T, namespace string, exited int) map[string]types.UID {
	t.Helper()
	var uids map[string]types.UID
	eventually(t, func(ctx context.Context) error {
		uids = map[string]types.UID{}
		var pods corev1.PodList
		if err := m.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": "idle"}); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			ended := 0
			for _, s := range pod.Status.EphemeralContainerStatuses {
				if s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 {
					ended++
				}
			}
			if !ready(pod) || ended != exited || pod.Status.ContainerStatuses[0].RestartCount > 0 {
				return fmt.Errorf("pod %s: ready %t, %+v", pod.Name, ready(pod), pod.Status.EphemeralContainerStatuses)
			}
			uids[pod.Name] = pod.UID
		}
		if len(uids) != 3 {
			return fmt.Errorf("%d pods", len(uids))
		}
		return nil
	})
	return uids
}
