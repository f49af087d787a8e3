//go:build envtest

package pod_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// A replica that does not lead writes probes into the pods that markers select, as the leader does. Without a replica
// the pods are created without the probes.
func testFollowerProbes(t *testing.T, g *ground) {
	g.lead(t)
	g.stop()
	g.follows, g.options.Probes.Serverless = true, true
	g.serve(t)
	defer func() {
		g.stop()
		g.follows, g.options.Probes.Serverless = false, false
		g.serve(t)
	}()
	g.until(t, "the follower is not ready", func(ctx context.Context) error {
		return g.webhook.Ready((&http.Request{}).WithContext(ctx))
	})
	g.have(t, concerned{}) // no set of another test
	marker := newMarker(t, "game",
		`{selector: {matchLabels: {app: web}}, probes: [{name: idle, containerName: main, podConditionType: a/idle, probe: {exec: {command: [idle]}}}]}`)
	marker.Namespace = g.Namespace(t)
	if err := g.Client.Create(t.Context(), marker); err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(marker)
	if err != nil {
		t.Fatal(err)
	}
	planned := scope.Plan(scope.Input{
		Namespace:     pod.DefaultNamespace,
		Contributions: []scope.Contribution{scope.Probes().Contribute([]*unstructured.Unstructured{{Object: content}})},
		Client: admissionregistrationv1.WebhookClientConfig{
			URL:      ptr.To(fmt.Sprintf("https://%s:%d%s", g.install.LocalServingHost, g.install.LocalServingPort, pod.Path)),
			CABundle: g.install.LocalServingCAData,
		},
	})
	g.config.Webhooks = planned.Entries
	if err := g.Client.Update(t.Context(), g.config); err != nil {
		t.Fatal(err)
	}
	stamps := func(namespace, want string) {
		t.Helper()
		g.until(t, "the pod of "+namespace, func(ctx context.Context) error {
			p := newPod(t, namespace, plain)
			if err := g.Client.Create(ctx, p, client.DryRunAll); err != nil {
				return err
			}
			if got := p.Annotations["kruise.io/podprobemarker-list"]; got != want {
				return fmt.Errorf("has the probes of %q, want %q", got, want)
			}
			return nil
		})
	}
	stamps(marker.Namespace, "game")
	g.took()
	stamps("default", "")
	if calls, _ := g.took(); calls != 0 {
		t.Errorf("%d calls for a pod that no marker selects", calls)
	}
	if err := g.Client.Delete(t.Context(), marker.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	stamps(marker.Namespace, "")
	marker.ResourceVersion, marker.UID = "", ""
	if err := g.Client.Create(t.Context(), marker); err != nil {
		t.Fatal(err)
	}
	stamps(marker.Namespace, "game")
	g.stop()
	stamps(marker.Namespace, "")
}
