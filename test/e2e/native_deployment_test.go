//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// testDeployments updates Deployments in place with the commands of kubectl. The webhook holds the first one, and the
// policy of config/native/hold the others, where API servers serve it.
func (m *deployed) testDeployments(t *testing.T) {
	n := newNatives(t, m.Cluster)
	byHand := n.deployment(t, "byhand", `{"class":"no-manager"}`)
	n.held(t, byHand)
	n.endByHand(t, byHand)
	if n.Minor(t) >= 36 {
		const policy = "../../config/native/hold"
		n.kubectl(t, "apply", "-k", policy)
		t.Cleanup(func() { _, _ = n.Kubectl(context.WithoutCancel(t.Context()), "delete", "-k", policy) })
	}
	t.Run("at the same time", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){"kubectl": n.testKubectl, "manifests of others": n.testOthers} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
}

// kubectl runs a command in the namespace, and logs it with what it prints: docs/native.md shows that.
func (n *natives) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := n.Kubectl(t.Context(), append(arguments, "-n", n.namespace)...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	t.Logf("$ kubectl %s\n%s", strings.Join(arguments, " "), out)
	return out
}

// testKubectl is what a user does with one Deployment.
func (n *natives) testKubectl(t *testing.T) {
	const web, timeout = "deployment/web", "--timeout=5m"
	n.deployment(t, "web", `{}`)
	to := func(k int) { n.kubectl(t, "set", "image", web, "web="+n.images[k]) }
	rolled := func() { n.kubectl(t, "rollout", "status", web, timeout) }
	rolled()
	one := n.podsOf(t, "app=web", n.images[0])
	n.show(t)
	to(1)
	rolled()
	two := n.podsOf(t, "app=web", n.images[1])
	n.show(t)
	samePods(t, one, two)
	n.kubectl(t, "rollout", "history", web)
	n.kubectl(t, "rollout", "undo", web)
	rolled()
	samePods(t, one, n.podsOf(t, "app=web", n.images[0]))
	if history := n.kubectl(t, "rollout", "history", web); strings.Count(history, "<none>") != 2 ||
		!strings.Contains(history, "\n2 ") || !strings.Contains(history, "\n3 ") {
		t.Errorf("the history has not the revisions 2 and 3:\n%s", history)
	}

	n.kubectl(t, "scale", web, "--replicas=4")
	to(1)
	rolled()
	n.sameOf(t, one, "app=web", n.images[1], nodes+1)

	// A pause of the user's is a mode of its own: images go out in place, and the pause stays.
	n.kubectl(t, "rollout", "pause", web)
	to(2)
	four := n.sameOf(t, one, "app=web", n.images[2], nodes+1)
	eventually(t, func(ctx context.Context) error {
		d, err := n.get(ctx, "web")
		if err == nil && (d.Status.UpdatedReplicas != nodes+1 || !d.Spec.Paused) {
			err = fmt.Errorf("paused %t, %+v", d.Spec.Paused, d.Status)
		}
		return err
	})
	n.kubectl(t, "rollout", "resume", web)
	rolled()
	samePods(t, four, n.podsOf(t, "app=web", n.images[2]))

	n.kubectl(t, "set", "resources", web, "-c", "web", "--requests=cpu=20m,memory=16Mi")
	rolled()
	for name, pod := range n.sameOf(t, one, "app=web", n.images[2], nodes+1) {
		if cpu := pod.Spec.Containers[0].Resources.Requests.Cpu(); cpu.MilliValue() != 20 {
			t.Errorf("pod %s requests %s", name, cpu)
		}
	}

	if n.Minor(t) >= 36 {
		n.kubectl(t, "patch", web, "-p", `{"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"120m"}}}}}}`)
		rolled()
		for name, pod := range n.sameOf(t, one, "app=web", n.images[2], nodes+1) {
			if cpu := pod.Spec.Resources.Requests.Cpu(); cpu.MilliValue() != 120 {
				t.Errorf("pod %s requests %s as a whole", name, cpu)
			}
		}
	}

	n.kubectl(t, "rollout", "restart", web)
	rolled()
	for name := range n.podsOf(t, "app=web", n.images[2]) {
		if _, same := four[name]; same {
			t.Errorf("pod %s is not restarted", name)
		}
	}
	n.kubectl(t, "get", "events", "--field-selector=involvedObject.name=web", "-o",
		"custom-columns=REASON:.reason,MESSAGE:.message")
}

// show prints the pods of the Deployment web.
func (n *natives) show(t *testing.T) {
	t.Helper()
	n.kubectl(t, "get", "pods", "-l", "app=web", "-o", "custom-columns=NAME:.metadata.name,UID:.metadata.uid,"+
		"IP:.status.podIP,NODE:.spec.nodeName,IMAGE:.spec.containers[0].image,"+
		"RESTARTS:.status.containerStatuses[0].restartCount")
}

// testOthers rolls out Deployments of others as they are. Their namespace asks for it with one label.
func (n *natives) testOthers(t *testing.T) {
	manifest, err := os.ReadFile("testdata/deployments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "deployments.yaml")
	text := strings.ReplaceAll(string(manifest), "IMAGE", n.images[0])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	others := *n
	others.namespace = n.Namespace(t)
	others.kubectl(t, "apply", "-f", file)
	names := []string{"frontend", "api", "cart", "store", "search"}
	for _, name := range names {
		others.kubectl(t, "rollout", "status", "deployment/"+name, "--timeout=5m")
	}
	before := others.podsOf(t, "", n.images[0])
	others.kubectl(t, "label", "namespace", others.namespace, adapter.RolloutKey+"="+adapter.Enabled)
	eventually(t, func(ctx context.Context) error { // each has its status, and so the manager knows the label
		for _, name := range names {
			d, err := others.get(ctx, name)
			if err == nil && len(d.Annotations["kruisekit.dev/rollout-status"]) == 0 {
				err = errors.New(name + " has no status")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	others.kubectl(t, "set", "image", "deployment", "--all", "server="+n.images[1])
	others.kubectl(t, "scale", "deployment/frontend", "--replicas=3") // as its autoscaler does
	for _, name := range names {
		others.kubectl(t, "rollout", "status", "deployment/"+name, "--timeout=5m")
	}
	others.sameOf(t, before, "", n.images[1], len(before)+1)
}

// get reads a Deployment.
func (n *natives) get(ctx context.Context, name string) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{ObjectMeta: n.meta(name)}
	err := n.Client.Get(ctx, client.ObjectKeyFromObject(d), d)
	return d, err
}

// podsOf returns the pods that a selector matches, whose main container must run an image.
func (n *natives) podsOf(t *testing.T, selector, image string) map[string]corev1.Pod {
	t.Helper()
	all := map[string]corev1.Pod{}
	eventually(t, func(ctx context.Context) error {
		list := &corev1.PodList{}
		by, err := labels.Parse(selector)
		if err == nil {
			err = n.Client.List(ctx, list, client.InNamespace(n.namespace), client.MatchingLabelsSelector{Selector: by})
		}
		if err != nil {
			return err
		}
		clear(all)
		for _, pod := range list.Items {
			if pod.DeletionTimestamp != nil || pod.Labels["app"] == "byhand" {
				continue
			}
			if pod.Spec.Containers[0].Image != image || pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s has %s, %s", pod.Name, pod.Spec.Containers[0].Image, pod.Status.Phase)
			}
			all[pod.Name] = pod
		}
		return nil
	})
	return all
}

// sameOf returns the pods that a selector matches: those from before, and more.
func (n *natives) sameOf(
	t *testing.T, before map[string]corev1.Pod, selector, image string, count int,
) map[string]corev1.Pod {
	t.Helper()
	after := n.podsOf(t, selector, image)
	if len(after) != count {
		t.Errorf("%d pods, want %d", len(after), count)
	}
	for name, pod := range before {
		samePods(t, map[string]corev1.Pod{name: pod}, map[string]corev1.Pod{name: after[name]})
	}
	return after
}

// deployment creates a Deployment with as many pods as there are nodes.
func (n *natives) deployment(t *testing.T, name, rollout string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: n.meta(name), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(nodes)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Template: n.template(name),
	}}
	d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
	}
	if n.Minor(t) >= 36 {
		d.Spec.Template.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}}
	}
	d.Annotations[adapter.RolloutKey] = rollout
	if err := n.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// held waits until API servers hold Deployments.
func (n *natives) held(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		changed := d.DeepCopy()
		patch := client.RawPatch("application/strategic-merge-patch+json", []byte(imageOf(n.images[2])))
		if err := n.Client.Patch(ctx, changed, patch, client.DryRunAll); err != nil {
			return err
		}
		if !changed.Spec.Paused {
			return fmt.Errorf("nothing holds the Deployment: %v", changed.Annotations)
		}
		return nil
	})
}

// endByHand ends a hold that no manager ends, as docs/native.md says.
func (n *natives) endByHand(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	page, err := os.ReadFile("../../docs/native.md")
	if err != nil {
		t.Fatal(err)
	}
	_, patch, _ := strings.Cut(string(page), "kubectl patch deployment web -p '")
	patch, _, _ = strings.Cut(patch, "'")
	n.kubectl(t, "set", "image", "deployment/"+d.Name, "web="+n.images[1])
	if paused := n.kubectl(t, "get", "deployment", d.Name, "-o", "jsonpath={.spec.paused}"); paused != "true" {
		t.Fatalf("spec.paused is %q", paused)
	}
	n.kubectl(t, "patch", "deployment", d.Name, "-p", patch)
	n.kubectl(t, "rollout", "status", "deployment/"+d.Name, "--timeout=5m")
	if d, err = n.get(t.Context(), d.Name); err != nil {
		t.Fatal(err)
	}
	if _, held := d.Annotations[adapter.HoldKey]; held || d.Spec.Paused || d.Status.UpdatedReplicas != nodes {
		t.Errorf("paused %t, %v, %+v", d.Spec.Paused, d.Annotations, d.Status)
	}
}
