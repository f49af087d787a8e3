//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kruisekit/kruisekit/test/cluster/image"
)

const (
	nodes   = 3
	timeout = 5 * time.Minute
	poll    = 100 * time.Millisecond
)

func runs(status corev1.ContainerStatus, want image.Image) bool {
	return strings.HasSuffix(status.ImageID, want.Digest) || strings.HasSuffix(status.ImageID, want.ID)
}

func statuses(pod *corev1.Pod) map[string]corev1.ContainerStatus {
	all := map[string]corev1.ContainerStatus{}
	for _, status := range pod.Status.ContainerStatuses {
		all[status.Name] = status
	}
	return all
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// eventually fails the test when check has not succeeded in time, with the last reason why.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), poll, timeout, true, func(ctx context.Context) (bool, error) {
		now := check(ctx)
		if now == nil || ctx.Err() == nil {
			last = now // that the time is over explains nothing
		}
		return now == nil, nil
	})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}
