//go:build envtest

package disruptions_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

// testExempt: the scheduler deletes the pods of a budget without room, also while no replica answers, and the deletion
// is recorded where one does.
func testExempt(t *testing.T, g *ground) {
	g.pods("preempted", 3, nil)
	b := over("preempted", 3, 0)
	g.budget(b, 3)
	g.until("the pods do not name their budget", func(ctx context.Context) error {
		for i := range 3 {
			pod := &corev1.Pod{}
			key := client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("preempted-%d", i)}
			if err := g.Client.Get(ctx, key, pod); err != nil {
				return err
			}
			if pod.Annotations[kruise.PodRelatedPubKey] != b.Name {
				return fmt.Errorf("annotations %v", pod.Annotations)
			}
		}
		return nil
	})
	remove := func(user, pod string) int32 {
		config := rest.CopyConfig(g.Config)
		config.Impersonate.UserName = user
		if user == "" {
			config.Impersonate = rest.ImpersonationConfig{}
		}
		kube, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		err = kube.CoreV1().Pods(namespace).Delete(t.Context(), pod, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](30),
		})
		return codeOf(err)
	}
	const scheduler = "system:kube-scheduler"
	for _, c := range []struct {
		why       string
		user, pod string
		down      bool
		code      int32
		sent      int
	}{
		{"other users wait for room", "", "preempted-0", false, 403, 1},
		{"other users wait for a replica", "", "preempted-0", true, 500, 1},
		{"the scheduler preempts", scheduler, "preempted-0", false, 200, 1},
		{"the scheduler preempts during an outage", scheduler, "preempted-1", true, 200, 1},
	} {
		g.took()
		g.down.Store(c.down)
		code := remove(c.user, c.pod)
		g.down.Store(false)
		if sent := g.took(); code != c.code || sent != c.sent {
			t.Errorf("%s: code %d, sent %d times", c.why, code, sent)
		}
	}
	now := &policyv1beta1.PodUnavailableBudget{}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		t.Fatal(err)
	}
	if now.Status.UnavailableAllowed != 0 {
		t.Errorf("status %+v", now.Status)
	}
}
