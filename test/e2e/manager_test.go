//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

const system = "kruise-system"

// The manager as config/default deploys it, with one gate more and without daemons. It is deployed once for all that is tried
// on it, where another implementation has left CloneSets behind.
func TestManager(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Level: cluster.Real, Scheme: newScheme(t)})
	begin := time.Now()
	left := leaveBehind(t, c)
	program := push(t, c, "kruise-manager")
	for _, r := range left {
		r.bequeath(t)
	}
	t.Logf("another implementation has left its sets after %s", time.Since(begin).Round(time.Second/10))
	m := deploy(t, c, overlay(t, []string{"--feature-gates=InPlaceWorkloadVerticalScaling=true"}, noDaemon, nil, program), theManager)

	t.Run("at the same time", func(t *testing.T) {
		for name, r := range left {
			t.Run("taken over/"+name, func(t *testing.T) { t.Parallel(); r.testTakeover(t) })
		}
		for name, test := range map[string]func(*testing.T){
			"in place": m.testInPlace, "resize": m.testResize, "claims": m.testClaims,
			"partition and pause": m.testPartitionAndPause, "surge": m.testSurge, "hooks": m.testHooks, "pods to delete": m.testPodsToDelete, "sample": m.testSample,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
		}
	})
	t.Run("nothing refused", m.testNothingRefused)
	t.Run("the leader is killed", m.testLeaderKilled)
	t.Run("all replicas are away", m.testNoReplica)
	t.Run("serving", m.testServing)
	for name, r := range left {
		t.Run("left alone/"+name, r.testLeftAlone)
	}
	t.Run("nothing refused to later leaders", m.testNothingRefused)
	m.logMemory(t)
}

// What API servers refuse a manager is refused for a reason that does not pass: its account, or the schema of what it writes.
func (m *deployed) testNothingRefused(t *testing.T) {
	for _, pod := range m.pods(t) {
		said, err := m.Kubectl(t.Context(), "logs", "-n", system, pod.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sign := range []string{"system:serviceaccount:kruise-system:kruise-manager", "Required value"} {
			if before, after, found := strings.Cut(said, sign); found {
				line, _, _ := strings.Cut(after, "\n")
				t.Errorf("%s: %s%s%s", pod.Name, before[strings.LastIndex(before, "\n")+1:], sign, line)
			}
		}
	}
}

// API servers can always call it, whatever happens to a replica or the Secret.
func (m *deployed) testServing(t *testing.T) {
	set := &unstructured.Unstructured{}
	set.SetAPIVersion("apps.kruise.io/v1beta1")
	set.SetKind("CloneSet")
	set.SetNamespace(m.Namespace(t))
	set.SetName("web")
	set.Object["spec"] = map[string]any{
		"replicas": int64(0),
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
		},
	}
	if err := m.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	stop := m.convertAllTheTime(t, set)

	t.Run("a replica goes", func(t *testing.T) {
		leader := m.leader(t)
		begin := time.Now()
		if err := m.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: leader}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) error {
			if now := m.holder(ctx, t); now == "" || strings.HasPrefix(now, leader) {
				return fmt.Errorf("%q leads", now)
			}
			return nil
		})
		t.Logf("another replica leads %s after the deletion of the leader", time.Since(begin).Round(time.Second/10))
		eventually(t, func(ctx context.Context) error { return m.ready(ctx) })
	})
	t.Run("the Secret goes", func(t *testing.T) {
		before, since := m.authority(t, ""), m.readySince(t)
		if err := m.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "kruise-webhook-certs"}}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		eventually(t, func(context.Context) error {
			if m.authority(t, before) == before {
				return errors.New("still the same CA")
			}
			return nil
		})
		eventually(t, func(context.Context) error { return m.inUse(t, 2) })
		t.Logf("all replicas serve with a new CA %s after the deletion of the Secret", time.Since(begin).Round(time.Second/10))
		for name, now := range m.readySince(t) {
			if !now.Equal(since[name]) {
				t.Errorf("%s was not ready meanwhile", name)
			}
		}
	})
	stop()
}

// deployed is the manager in the cluster.
type deployed struct{ *cluster.Cluster }

// push builds a program and makes an image of it.
func push(t *testing.T, c *cluster.Cluster, name string) image.Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-tags=grpcnotrace", "-trimpath", "-ldflags=-s -w", "-o", program, "../../examples/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	spec := image.Program(name, content)
	spec.Name = "e2e/" + name + ":dev"
	return c.Push(t, spec)
}

// deploy applies a kustomization, and waits until what it has runs.
func deploy(t *testing.T, c *cluster.Cluster, kustomization string, workloads ...string) *deployed {
	t.Helper()
	begin := time.Now()
	if _, err := c.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", kustomization); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if _, err := c.Kubectl(ctx, "delete", "--ignore-not-found", "-k", "../../config/default"); err != nil {
			t.Errorf("remove what was deployed: %v", err)
		}
	})
	applied := time.Now()
	for _, workload := range workloads {
		if _, err := c.Kubectl(t.Context(), "rollout", "status", "-n", system, workload, "--timeout=2m"); err != nil {
			said, _ := c.Kubectl(t.Context(), "logs", "-n", system, "--prefix", workload)
			t.Fatalf("%v\n%s", err, said)
		}
	}
	t.Logf("applied in %s, rolled out in %s", applied.Sub(begin).Round(time.Second/10), time.Since(applied).Round(time.Second/10))
	return &deployed{Cluster: c}
}

const (
	theManager = "deployment/kruise-controller-manager"
	theDaemon  = "daemonset/kruise-daemon"
	// noDaemon leaves daemons out, who would write to pods that a manager is to leave alone.
	noDaemon = `
- target: {kind: DaemonSet, name: kruise-daemon}
  patch: '{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kruise-daemon"}, "$patch": "delete"}'`
)

// overlay is config/default and more, with images by digest and arguments of the manager.
func overlay(t *testing.T, arguments []string, patches string, more []string, programs ...image.Image) string {
	t.Helper()
	dir := t.TempDir()
	var bases, images []string
	for _, base := range append([]string{"../../config/default"}, more...) {
		base, err := filepath.Abs(base)
		if err != nil {
			t.Fatal(err)
		}
		if base, err = filepath.Rel(dir, base); err != nil {
			t.Fatal(err)
		}
		bases = append(bases, base)
	}
	for _, made := range programs {
		name, _, _ := strings.Cut(made.Name, ":")
		images = append(images, fmt.Sprintf("{name: %s, newName: %q, digest: %q}", filepath.Base(name), name, made.Digest))
	}
	var added []string
	for _, argument := range arguments {
		added = append(added, fmt.Sprintf(`{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": %q}`, argument))
	}
	text := fmt.Sprintf(`
resources: [%s]
images: [%s]
patches:
- target: {kind: Deployment, name: kruise-controller-manager}
  patch: '[%s]'%s
`, strings.Join(bases, ", "), strings.Join(images, ", "), strings.Join(added, ", "), patches)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// convertAllTheTime reads the object in the version that it is not stored in, which the API server asks a replica for.
func (m *deployed) convertAllTheTime(t *testing.T, set *unstructured.Unstructured) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	reads := 0
	running.Go(func() {
		for ctx.Err() == nil {
			old := &unstructured.Unstructured{}
			old.SetAPIVersion("apps.kruise.io/v1alpha1")
			old.SetKind("CloneSet")
			if err := m.Client.Get(ctx, client.ObjectKeyFromObject(set), old); err != nil && ctx.Err() == nil {
				t.Errorf("at %s, after %d reads in v1alpha1: %v", time.Now().Format(time.TimeOnly), reads, err)
				return
			}
			reads++
		}
	})
	return func() {
		cancel()
		running.Wait()
		t.Logf("%d reads in v1alpha1", reads)
	}
}

func (m *deployed) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := m.Client.List(t.Context(), &pods, client.InNamespace(system), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func (m *deployed) ready(ctx context.Context) error {
	var d appsv1.Deployment
	if err := m.Client.Get(ctx, types.NamespacedName{Namespace: system, Name: "kruise-controller-manager"}, &d); err != nil {
		return err
	}
	if d.Status.AvailableReplicas != 2 || d.Status.Replicas != 2 {
		return fmt.Errorf("%d of %d replicas are available", d.Status.AvailableReplicas, d.Status.Replicas)
	}
	return nil
}

// readySince is when each replica has become ready for the last time.
func (m *deployed) readySince(t *testing.T) map[string]time.Time {
	t.Helper()
	since := map[string]time.Time{}
	for _, pod := range m.pods(t) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				since[pod.Name] = c.LastTransitionTime.Time
			}
		}
	}
	return since
}

// holder of the lease, which begins with the name of its pod.
func (m *deployed) holder(ctx context.Context, t *testing.T) string {
	t.Helper()
	var lease coordinationv1.Lease
	if err := m.Client.Get(ctx, types.NamespacedName{Namespace: system, Name: "kruise-manager"}, &lease); err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func (m *deployed) leader(t *testing.T) string {
	t.Helper()
	var name string
	eventually(t, func(ctx context.Context) error {
		name, _, _ = strings.Cut(m.holder(ctx, t), "_")
		if name == "" {
			return errors.New("nobody leads")
		}
		return nil
	})
	return name
}

// authority is the CA in the Secret, or what is given where there is none.
func (m *deployed) authority(t *testing.T, or string) string {
	t.Helper()
	var secret corev1.Secret
	err := m.Client.Get(t.Context(), types.NamespacedName{Namespace: system, Name: "kruise-webhook-certs"}, &secret)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return or
	}
	return string(secret.Data["ca-cert.pem"])
}

// inUse says which replica has not yet switched to a certificate of another CA: each says so in its log.
func (m *deployed) inUse(t *testing.T, authorities int) error {
	t.Helper()
	for _, pod := range m.pods(t) {
		said, err := m.Kubectl(t.Context(), "logs", "-n", system, pod.Name)
		if err != nil {
			return err
		}
		if !strings.Contains(said, fmt.Sprintf("authorities=%d", authorities)) {
			return fmt.Errorf("%s still serves with the CA of before", pod.Name)
		}
	}
	return nil
}

func (m *deployed) logMemory(t *testing.T) {
	t.Helper()
	resident := regexp.MustCompile(`(?m)^(process_resident_memory_bytes|process_cpu_seconds_total|kruise_manager_is_leader) .*$`)
	for _, pod := range m.pods(t) {
		metrics, err := m.Kubectl(t.Context(), "get", "--raw", "/api/v1/namespaces/"+system+"/pods/"+pod.Name+":8080/proxy/metrics")
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s: %s", pod.Name, strings.Join(resident.FindAllString(metrics, -1), ", "))
	}
}
