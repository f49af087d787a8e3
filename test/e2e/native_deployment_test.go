//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// testDeployment updates Deployments with the commands of kubectl. The policy of config/native holds them.
func (n *natives) testDeployment(t *testing.T) {
	const policy = "../../config/native/hold.yaml"
	if n.Minor(t) < 36 {
		t.Skip("Kubernetes before 1.36 serves no MutatingAdmissionPolicy by default")
	}
	kubectl := func(arguments ...string) string {
		t.Helper()
		out, err := n.Kubectl(t.Context(), append(arguments, "-n", n.namespace)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	kubectl("apply", "-f", policy)
	t.Cleanup(func() { _, _ = n.Kubectl(context.WithoutCancel(t.Context()), "delete", "-f", policy) })
	web, byHand := n.deployment(t, "web", `{}`), n.deployment(t, "byhand", `{"class":"no-manager"}`)
	n.held(t, byHand)

	one := n.pods(t, web, n.images[0], 0)
	kubectl("set", "image", "deployment/web", "web="+n.images[1])
	kubectl("rollout", "status", "deployment/web", "--timeout=3m")
	samePods(t, one, n.pods(t, web, n.images[1], 1))
	kubectl("rollout", "undo", "deployment/web")
	kubectl("rollout", "status", "deployment/web", "--timeout=3m")
	samePods(t, one, n.pods(t, web, n.images[0], 2))
	if history := kubectl("rollout", "history", "deployment/web"); strings.Count(history, "<none>") != 2 ||
		!strings.Contains(history, "\n2 ") || !strings.Contains(history, "\n3 ") {
		t.Errorf("the history has not the revisions 2 and 3:\n%s", history)
	}
	n.endByHand(t, byHand, kubectl)
}

// deployment creates a Deployment with as many pods as there are nodes.
func (n *natives) deployment(t *testing.T, name, rollout string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: n.meta(name), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(nodes)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Template: n.template(name),
	}}
	d.Annotations[adapter.RolloutKey] = rollout
	if err := n.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// held waits until API servers enforce the policy.
func (n *natives) held(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		changed := d.DeepCopy()
		patch := client.RawPatch("application/strategic-merge-patch+json", []byte(imageOf(n.images[2])))
		if err := n.Client.Patch(ctx, changed, patch, client.DryRunAll); err != nil {
			return err
		}
		if !changed.Spec.Paused {
			return fmt.Errorf("the policy holds nothing: %v", changed.Annotations)
		}
		return nil
	})
}

// endByHand ends a hold that no manager ends, as docs/native.md says.
func (n *natives) endByHand(t *testing.T, d *appsv1.Deployment, kubectl func(...string) string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/native.md")
	if err != nil {
		t.Fatal(err)
	}
	_, patch, _ := strings.Cut(string(page), "kubectl patch deployment web -p '")
	patch, _, _ = strings.Cut(patch, "'")
	kubectl("set", "image", "deployment/"+d.Name, "web="+n.images[1])
	if paused := kubectl("get", "deployment", d.Name, "-o", "jsonpath={.spec.paused}"); paused != "true" {
		t.Fatalf("spec.paused is %q", paused)
	}
	kubectl("patch", "deployment", d.Name, "-p", patch)
	kubectl("rollout", "status", "deployment/"+d.Name, "--timeout=3m")
	if err := n.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	if _, held := d.Annotations[adapter.HoldKey]; held || d.Spec.Paused || d.Status.UpdatedReplicas != nodes {
		t.Errorf("paused %t, %v, %+v", d.Spec.Paused, d.Annotations, d.Status)
	}
}
