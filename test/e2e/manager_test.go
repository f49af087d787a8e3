//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
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
)

const (
	system      = "kruise-system"
	managerName = "kruise-controller-manager"
)

// testManager is what the manager does without daemons, where another implementation has left CloneSets behind.
func (m *deployed) testManager(t *testing.T, left map[string]*remains) {
	t.Run("at the same time", func(t *testing.T) {
		t.Run("stalled", func(t *testing.T) { t.Parallel(); m.testStalled(t) }) // waits longest, and so starts first
		for name, r := range left {
			t.Run("taken over/"+name, func(t *testing.T) { t.Parallel(); r.testTakeover(t) })
		}
		for name, test := range map[string]func(*testing.T){
			"in place": m.testInPlace, "claims": m.testClaims,
			"document of CloneSets":         m.testSample,
			"document of DaemonSets":        m.testPage("daemonset", "ads"),
			"document of StatefulSets":      m.testPage("statefulset", "asts"),
			"document of BroadcastJobs":     m.testBroadcastJob,
			"document of EphemeralJobs":     m.testEphemeralJob,
			"document of UnitedDeployments": m.testUnitedDocument,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
		}
	})
	t.Run("nothing refused", m.testNothingRefused)
	t.Run("all replicas are away", m.testNoReplica)
	t.Run("serving", m.testServing)
	t.Run("left alone", func(t *testing.T) {
		for _, r := range left {
			r.testLeftAlone(t)
		}
	})
}

// What API servers refuse a manager is refused for a reason that does not pass: its account, or the schema of what it
// writes.
func (m *deployed) testNothingRefused(t *testing.T) {
	for _, pod := range append(m.pods(t), m.daemons(t)...) {
		said, err := m.Kubectl(t.Context(), "logs", "-n", system, pod.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sign := range []string{"is forbidden: User", "ValidatingAdmissionPolicy", "Required value"} {
			if before, after, found := strings.Cut(said, sign); found {
				line, _, _ := strings.Cut(after, "\n")
				t.Errorf("%s: %s%s%s", pod.Name, before[strings.LastIndex(before, "\n")+1:], sign, line)
			}
		}
	}
}

// testServing reads a CloneSet in the version that it is not stored in all the time, while a replica is replaced, and
// while all replicas switch to another certificate.
func (m *deployed) testServing(t *testing.T) {
	set := ofEnvironment(m.Namespace(t), "web", 0)
	set.Spec.Replicas = new(int32)
	if err := m.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	stop := m.convertAllTheTime(t, client.ObjectKeyFromObject(set))
	leader, begin := m.leader(t), time.Now()
	if err := m.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: system, Name: leader,
	}}); err != nil {
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

	before, since := m.authority(t, ""), m.readySince(t)
	if err := m.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: system, Name: "kruise-webhook-certs",
	}}); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	eventually(t, func(context.Context) error {
		if m.authority(t, before) == before {
			return errors.New("still the same CA")
		}
		return nil
	})
	eventually(t, func(context.Context) error { return m.inUse(t, 2) })
	t.Logf("all replicas serve with a new CA %s after the deletion of the Secret",
		time.Since(begin).Round(time.Second/10))
	for name, now := range m.readySince(t) {
		if !now.Equal(since[name]) {
			t.Errorf("%s was not ready meanwhile", name)
		}
	}
	stop()
}

// convertAllTheTime reads the object in the version that it is not stored in, which the API server asks a replica for.
func (m *deployed) convertAllTheTime(t *testing.T, set client.ObjectKey) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	reads := 0
	running.Add(1)
	go func() {
		defer running.Done()

		for ctx.Err() == nil {
			old := &unstructured.Unstructured{}
			old.SetAPIVersion("apps.kruise.io/v1alpha1")
			old.SetKind("CloneSet")
			if err := m.Client.Get(ctx, set, old); err != nil && ctx.Err() == nil {
				t.Errorf("at %s, after %d reads in v1alpha1: %v", time.Now().Format(time.TimeOnly), reads, err)
				return
			}
			reads++
		}
	}()
	return func() {
		cancel()
		running.Wait()
		t.Logf("%d reads in v1alpha1", reads)
	}
}

func (m *deployed) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := m.Client.List(t.Context(), &pods, client.InNamespace(system), client.MatchingLabels{
		"control-plane": "controller-manager",
	}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func (m *deployed) ready(ctx context.Context) error { return m.available(ctx, managerName, 2) }

// available reports why a Deployment of managers does not have these replicas.
func (m *deployed) available(ctx context.Context, name string, replicas int32) error {
	var d appsv1.Deployment
	if err := m.Client.Get(ctx, types.NamespacedName{Namespace: system, Name: name}, &d); err != nil {
		return err
	}
	if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas != replicas ||
		d.Status.Replicas != replicas {
		return fmt.Errorf("%s: %d of %d replicas are available, want %d",
			name, d.Status.AvailableReplicas, d.Status.Replicas, replicas)
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
