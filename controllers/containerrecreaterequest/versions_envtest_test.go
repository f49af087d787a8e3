//go:build envtest

package containerrecreaterequest_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// benchOfBothVersions has an API server of its own, for which this process converts.
func benchOfBothVersions(t *testing.T) *bench {
	t.Helper()
	webhook := httptest.NewTLSServer(conversion.NewHandler())
	t.Cleanup(webhook.Close)
	url := webhook.URL + conversion.Path
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{
		URL:      &url,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{Private: true})
	definitions, err := client.New(c.Config, client.Options{Scheme: schemeOf(t, apiextensionsv1.AddToScheme)})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range crds {
		if d.Name != "containerrecreaterequests.apps.kruise.io" {
			continue
		}
		if err := definitions.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	// A watch of a kind that is not served yet is tried again after ten seconds.
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			all, err := client.New(c.Config, client.Options{Scheme: schemeOf(t, v1alpha1.AddToScheme, v1beta1.AddToScheme)})
			return err == nil && all.List(ctx, &v1alpha1.ContainerRecreateRequestList{}) == nil &&
				all.List(ctx, &v1beta1.ContainerRecreateRequestList{}) == nil, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return benchIn(t, c)
}

// What happens to a request is seen in both versions as each tells it, whichever it was made in.
func TestVersions(t *testing.T) {
	t.Parallel()
	b := benchOfBothVersions(t)
	b.reconcile(ahead(0), plain)
	b.node.serve()
	for name, older := range map[string]bool{"older": true, "newer": false} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			pod := b.pod("web-"+name, gated)
			r, faults := containerrestart.Admit(b.asked(name, pod, grace(1)), pod, &corev1.Node{})
			if len(faults) > 0 {
				t.Fatal(faults.ToAggregate())
			}
			view := &v1alpha1.ContainerRecreateRequest{}
			if err := view.ConvertFrom(r); err != nil {
				t.Fatal(err)
			}
			made := client.Object(r)
			if older {
				made = view
			}
			if err := b.client.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			b.becomes(r, ended(""))
			if err := b.look(view); err != nil {
				t.Fatal(err)
			}
			since, snapshot := graceCondition(r), r.Status.ContainerStatusSnapshot
			if since == nil || since.Status != metav1.ConditionTrue || len(snapshot) != 1 || snapshot[0].RestartCount != 1 {
				t.Fatalf("in v1beta1: %+v", r.Status)
			}
			if len(r.Annotations) > 0 {
				t.Errorf("in v1beta1 it has the annotations %v", r.Annotations)
			}
			want := map[string]string{
				v1alpha1.ContainerRecreateRequestUnreadyAcquiredKey: since.LastTransitionTime.UTC().Format(time.RFC3339),
				v1alpha1.ContainerRecreateRequestSyncContainerStatusesKey: fmt.Sprintf(
					`[{"name":"app","ready":true,"restartCount":1,"containerID":%q}]`, snapshot[0].ContainerID),
			}
			if diff := cmp.Diff(want, view.Annotations); diff != "" {
				t.Errorf("annotations in v1alpha1 (-want +got):\n%s", diff)
			}
			if s := view.Status; s.Phase != v1alpha1.ContainerRecreateRequestCompleted || len(s.ContainerRecreateStates) != 1 ||
				!s.ContainerRecreateStates[0].IsKilled {
				t.Errorf("in v1alpha1: %+v", s)
			}
		})
	}
}
