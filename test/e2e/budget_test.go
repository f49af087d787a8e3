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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

// testBudget rolls out a CloneSet in place, whose own bound admits all pods at once, and drains a node, under a budget
// of one pod. A drain selects pods of all namespaces: no other test has a set of this name.
func (m *deployed) testBudget(t *testing.T) {
	const replicas = 4
	s := m.newSet(t, "drained")
	s.create(t, replicas, func(spec *v1beta1.CloneSetSpec) {
		spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("100%"))
	})
	m.budget(t, s.namespace, s.name, replicas)
	before := s.pods(t)
	s.roll(t)
	s.waitFor(t, "the end of the rollout, with at most one pod not ready", during(t, before, s.all("new", 1)))
	sameButFor(t, "main", before, s.pods(t))
	s.drain(t, replicas)
}

// budget stores a budget of one pod, and waits until the budget has room and requests about its pods are sent.
func (m *deployed) budget(t *testing.T, namespace, app string, replicas int32) *policyv1beta1.PodUnavailableBudget {
	t.Helper()
	b := &policyv1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app},
		Spec: policyv1beta1.PodUnavailableBudgetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		},
	}
	if err := m.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if b.Status.UnavailableAllowed != 1 || b.Status.TotalReplicas != replicas {
			return fmt.Errorf("status %+v", b.Status)
		}
		said, err := m.Kubectl(ctx, "get", "validatingwebhookconfiguration", "kruise-pods-webhook-configuration", "-o",
			"jsonpath={.webhooks[*].namespaceSelector.matchExpressions[*].values}")
		if err != nil || !strings.Contains(said, namespace) {
			return errors.Join(fmt.Errorf("the entries lack namespace %s", namespace), err)
		}
		return nil
	})
	return b
}

// drain drains the node with most of the pods, and watches the pods meanwhile.
func (s *theSet) drain(t *testing.T, replicas int) {
	t.Helper()
	on := map[string]int{}
	node := ""
	for _, pod := range s.pods(t) {
		if on[pod.Spec.NodeName]++; on[pod.Spec.NodeName] > on[node] {
			node = pod.Spec.NodeName
		}
	}
	if on[node] < 2 {
		t.Fatalf("%d pods on %d nodes", replicas, len(on))
	}
	defer func() {
		if _, err := s.Kubectl(context.WithoutCancel(t.Context()), "uncordon", node); err != nil {
			t.Error(err)
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	least := replicas
	var watch sync.WaitGroup
	watch.Add(1)
	go func() {
		defer watch.Done()

		for ctx.Err() == nil {
			var pods corev1.PodList
			if s.Client.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": s.name}) != nil {
				continue
			}
			n := 0
			for i := range pods.Items {
				if pods.Items[i].DeletionTimestamp == nil && ready(&pods.Items[i]) {
					n++
				}
			}
			least = min(least, n)
		}
	}()
	begin := time.Now()
	said, err := s.Kubectl(t.Context(), "drain", node, "--pod-selector=app="+s.name, "--ignore-daemonsets", "--timeout=5m")
	took := time.Since(begin)
	stop()
	watch.Wait()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	events, err := s.Kubectl(t.Context(), "get", "events", "-n", s.namespace,
		"--field-selector=reason=PubPreventPodDeletion", "-o", "jsonpath={.items[*].message}")
	if err != nil || !strings.Contains(events,
		"PodUnavailableBudget drained refused operation EVICT: pub unavailable allowed is negative") {
		t.Errorf("no eviction was refused: %v, events %q", err, events)
	}
	t.Logf(
		"kubectl drain of a node with %d of %d pods under a budget of one: %s, at least %d pods available, violations: %d",
		on[node], replicas, took.Round(time.Second/10), least, max(0, replicas-1-least))
	if least < replicas-1 {
		t.Errorf("only %d of %d pods were available", least, replicas)
	}
	s.waitFor(t, "all pods on other nodes", func(l look) error {
		for name, pod := range l.pods {
			if pod.Spec.NodeName == node {
				return fmt.Errorf("%s is on %s", name, node)
			}
		}
		if n := serving(l.pods); n != replicas {
			return fmt.Errorf("%d of %d pods are ready", n, replicas)
		}
		return nil
	})
}

// budgetOutage disrupts pods while no replica of the manager runs.
type budgetOutage struct {
	*deployed
	set *theSet
}

func (m *deployed) newBudgetOutage(t *testing.T) *budgetOutage {
	t.Helper()
	o := &budgetOutage{deployed: m, set: m.newSet(t, "guarded")}
	o.set.create(t, 2, nil)
	m.budget(t, o.set.namespace, o.set.name, 2)
	return o
}

// away: only what a budget might refuse waits for the manager.
func (o *budgetOutage) away(t *testing.T) {
	t.Helper()
	plain := held(o.set.namespace, "free", nil)
	if err := o.Client.Create(t.Context(), plain); err != nil {
		t.Errorf("a pod beside those of the budget: %v", err)
	}
	scheduler := o.as(t, "system:kube-scheduler")
	for _, pod := range o.set.pods(t) {
		if err := scheduler.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name,
			metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("preemption of a guarded pod: %v", err)
		}
		if err := o.Client.Delete(t.Context(), pod, client.DryRunAll); err == nil ||
			!strings.Contains(err.Error(), `failed calling webhook "vpod.kb.io"`) {
			t.Errorf("deletion of a guarded pod: %v", err)
		}
		label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"outage":"true"}}}`))
		if err := o.Client.Patch(t.Context(), pod, label, client.DryRunAll); err != nil {
			t.Errorf("a label of a guarded pod: %v", err)
		}
	}
	if err := o.Client.Delete(t.Context(), plain); err != nil {
		t.Errorf("deletion of a pod that no budget guards: %v", err)
	}
}

// back: a deletion is admitted once a replica answers.
func (o *budgetOutage) back(t *testing.T) {
	t.Helper()
	for _, pod := range o.set.pods(t) {
		eventually(t, func(ctx context.Context) error { return o.Client.Delete(ctx, pod, client.DryRunAll) })
		return
	}
}
