//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testPage types what the page of a kind says about its sample: three pods that get another image, and stay. What
// kubectl prints of the object is what the page shows.
func (m *deployed) testPage(page, resource string) func(t *testing.T) {
	return func(t *testing.T) {
		m.pushNginx(t)
		path, namespace := "../../docs/kinds/"+page+".md", m.Namespace(t)
		var before map[string]types.UID
		for _, words := range typed(t, path) {
			line := strings.Join(words, " ")
			kubectl := func(ctx context.Context) (string, error) { return m.Kubectl(ctx, append(words, "-n", namespace)...) }
			said, err := kubectl(t.Context())
			if err != nil {
				t.Fatalf("kubectl %s: %v\n%s", line, err, said)
			}
			switch {
			case words[0] == "apply":
				before = m.running(t, namespace, "nginx:1.27", 0)
			case strings.Contains(line, "nginx:1.28"):
				after := m.running(t, namespace, "nginx:1.28", 1)
				for name, uid := range after {
					if before[name] != uid {
						t.Errorf("pod %s was recreated", name)
					}
				}
			case words[0] == "get" && words[1] == resource:
				eventually(t, func(ctx context.Context) error {
					said, err := kubectl(ctx)
					if err != nil {
						return err
					}
					return isShown(path, said)
				})
			case words[0] == "describe" && !strings.Contains(said, "SuccessfulUpdatePodInPlace"):
				t.Errorf("no event of an update in place:\n%s", said)
			case words[0] == "delete":
				return // what follows is about trouble
			}
		}
		t.Errorf("%s does not delete its sample", path)
	}
}

// running waits for three ready pods with an image, and with as many restarts, and returns their UIDs by name.
func (m *deployed) running(t *testing.T, namespace, image string, restarts int32) map[string]types.UID {
	t.Helper()
	var uids map[string]types.UID
	eventually(t, func(ctx context.Context) error {
		uids = map[string]types.UID{}
		var pods corev1.PodList
		if err := m.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !ready(pod) || pod.Spec.Containers[0].Image != image || pod.Status.ContainerStatuses[0].RestartCount != restarts {
				return fmt.Errorf("pod %s: image %s, ready %t, %+v",
					pod.Name, pod.Spec.Containers[0].Image, ready(pod), pod.Status.ContainerStatuses)
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
