//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// testBroadcastJob types what the document says: a pod runs to its end on each node. What kubectl prints is what the
// document shows.
func (m *deployed) testBroadcastJob(t *testing.T) {
	const path = "../../docs/kinds/broadcastjob.md"
	m.Push(t, image.Spec{Name: "busybox:1.36"})
	namespace := m.Namespace(t)
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "check-disks"}}
	for _, words := range typed(t, path) {
		line := strings.Join(words, " ")
		said, err := m.Kubectl(t.Context(), append(words, "-n", namespace)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", line, err, said)
		}
		switch {
		case words[0] == "apply":
			eventually(t, func(ctx context.Context) error {
				if err := m.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
					return err
				}
				if job.Status.Phase != v1beta1.PhaseCompleted {
					return fmt.Errorf("status %+v", job.Status)
				}
				return nil
			})
		case line == "get bcj check-disks":
			shown(t, path, said)
		case words[0] == "describe" &&
			(!strings.Contains(said, "SuccessfulCreate") || !strings.Contains(said, "JobComplete")):
			t.Errorf("no events:\n%s", said)
		case words[0] == "delete":
			return // what follows is about trouble
		}
	}
}
