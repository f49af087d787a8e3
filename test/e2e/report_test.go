//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// report does what the daemon of the reference goes on doing: it tells of each pod which containers run, and from what
// they were made. The hashes are those that it recorded of the same pods; a container's image tells before or after
// which update.
func (r *remains) report(ctx context.Context) error {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(r.namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		var now kruise.RuntimeContainerMetaSet
		for _, status := range pod.Status.ContainerStatuses {
			meta, ok := r.reports[reportKey(pod.Name, status.Name, status.Image)]
			if !ok || status.State.Running == nil {
				continue
			}
			meta.ContainerID, meta.RestartCount = status.ContainerID, status.RestartCount
			now.Containers = append(now.Containers, meta)
		}
		text, err := json.Marshal(now)
		if err != nil {
			return err
		}
		if len(now.Containers) == 0 || pod.Annotations[kruise.RuntimeContainerMetaKey] == string(text) {
			continue
		}
		before := client.MergeFrom(pod.DeepCopy())
		pod.Annotations[kruise.RuntimeContainerMetaKey] = string(text)
		if err := r.client.Status().Patch(ctx, pod, before); err != nil {
			return err
		}
	}
	return nil
}

// recordedReports are what the daemon told, by pod, container and image.
func recordedReports(t *testing.T) map[string]kruise.RuntimeContainerMeta {
	t.Helper()
	all := map[string]kruise.RuntimeContainerMeta{}
	for _, step := range []string{"1-created", "3-updated"} {
		data, err := os.ReadFile("../compat/testdata/recorded/" + step + "/pods.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var pods corev1.PodList
		if err := yaml.Unmarshal(data, &pods); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			var told kruise.RuntimeContainerMetaSet
			if text := pod.Annotations[kruise.RuntimeContainerMetaKey]; text != "" {
				if err := json.Unmarshal([]byte(text), &told); err != nil {
					t.Fatal(err)
				}
			}
			images := statuses(pod)
			for _, meta := range told.Containers {
				all[reportKey(pod.Name, meta.Name, images[meta.Name].Image)] = meta
			}
		}
	}
	return all
}

func reportKey(pod, container, image string) string {
	return pod + " " + container + " " + strings.TrimPrefix(image, "docker.io/library/")
}
