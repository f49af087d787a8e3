//go:build envtest

package sidecars_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// What docs/sidecar.md says of the entries while no manager runs: one that is opened stays open, also when sets change,
// and one that is deleted comes back closed.
func testGettingOut(t *testing.T, c *cluster.Cluster) {
	text, err := os.ReadFile("../../docs/sidecar.md")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile(`(?m)^kubectl patch mutatingwebhookconfiguration (\S+) --type=json -p '([^']*)'$`).
		FindAllStringSubmatch(string(text), -1)
	if len(told) != 2 {
		t.Fatalf("%d patches are described, want one that opens an entry and one that deletes it", len(told))
	}
	patch := func(words []string) {
		t.Helper()
		if said, err := c.Kubectl(t.Context(), "patch", "mutatingwebhookconfiguration", words[1], "--type=json",
			"-p", words[2]); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	closed := theEntry(t, c)
	if closed.Name != "mpod.kb.io" || *closed.FailurePolicy != admissionregistrationv1.Fail {
		t.Fatalf("the entry %s says %s", closed.Name, *closed.FailurePolicy)
	}
	patch(told[0])
	if open := theEntry(t, c); *open.FailurePolicy != admissionregistrationv1.Ignore {
		t.Errorf("the patch leaves %s", *open.FailurePolicy)
	}

	other := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bank"}}
	if err := c.Client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, func(context.Context) error {
		if now := theEntry(t, c); cmp.Equal(now.MatchConditions, closed.MatchConditions) {
			return fmt.Errorf("the entry does not have the set other: %v", now.MatchConditions)
		}
		return nil
	})
	if kept := theEntry(t, c); *kept.FailurePolicy != admissionregistrationv1.Ignore {
		t.Errorf("with a set more, the entry says %s", *kept.FailurePolicy)
	}

	patch(told[1])
	cluster.Eventually(t, func(context.Context) error {
		if fresh := theEntry(t, c); fresh.FailurePolicy == nil || *fresh.FailurePolicy != admissionregistrationv1.Fail {
			return fmt.Errorf("the entry does not come back: %+v", fresh)
		}
		return nil
	})
}

// theEntry is the first one of the configuration of pods, an empty one where there is none.
func theEntry(t *testing.T, c *cluster.Cluster) admissionregistrationv1.MutatingWebhook {
	t.Helper()
	var have admissionregistrationv1.MutatingWebhookConfiguration
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: podscope.DefaultConfiguration}, &have); err != nil {
		t.Fatal(err)
	}
	if len(have.Webhooks) == 0 {
		return admissionregistrationv1.MutatingWebhook{}
	}
	return have.Webhooks[0]
}
