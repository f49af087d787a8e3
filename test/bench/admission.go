package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// clients of scenarios E and F.
const clients = 50

// admission is scenario E: what the webhook of new pods adds to their creation, and what it costs the manager.
func admission(ctx context.Context, e *env) error {
	n := e.pick(500, 2000)
	r, err := e.settled(ctx)
	if err != nil {
		return err
	}
	a := &admitted{env: e, n: n}
	// Creations are dry runs, for which API servers call webhooks alike and which no node sees. A dry run is given a
	// subset of a WorkloadSpread, but takes none: the write that a real one costs is missing.
	e.report.table(fmt.Sprintf("%d new pods, %d at a time", n, clients),
		"installed", "p50 ms", "p99 ms", "p99 added ms", "CPU ms/pod")
	if err := a.measure(ctx, r, "nothing", "web"); err != nil {
		return err
	}
	if err := e.apply(ctx, sidecarSets(100, 3)); err != nil {
		return err
	}
	if err := r.idle(ctx, 3*time.Second); err != nil {
		return err
	}
	if err := a.measure(ctx, r, "100 SidecarSets, none matches", "other"); err != nil {
		return err
	}
	if err := e.profiled(ctx, r, profile{"e-sidecarsets", 10 * time.Second}, func() error {
		return a.measure(ctx, r, "100 SidecarSets, 3 match", "web")
	}); err != nil {
		return err
	}
	if err := e.apply(ctx, append(spreads(20), budgets(20)...)); err != nil {
		return err
	}
	if err := r.idle(ctx, 3*time.Second); err != nil {
		return err
	}
	spread := cloneSet("spread-1", 0)
	if err := spread.create(ctx, e.client); err != nil {
		return err
	}
	set := spread.empty()
	if err := e.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return fmt.Errorf("get CloneSet: %w", err)
	}
	a.owner = *metav1.NewControllerRef(set, set.GroupVersionKind())
	if err := a.measure(ctx, r, "20 WorkloadSpreads, 1 matches", "spread-1"); err != nil {
		return err
	}
	if err := a.measure(ctx, r, "20 budgets, 1 matches", "budget-1"); err != nil {
		return err
	}
	if err := r.stop(); err != nil {
		return err
	}
	return a.measure(ctx, nil, "manager down, none matches", "other")
}

// admitted measures creations of pods.
type admitted struct {
	*env

	n int
	// base is the 99th percentile where nothing is installed.
	base time.Duration
	// owner is the workload that a WorkloadSpread spreads.
	owner metav1.OwnerReference
}

func (a *admitted) measure(ctx context.Context, r *replica, name, app string) error {
	p, err := newPlain(ctx, a.config)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var took []time.Duration
	ph, err := measure(ctx, r, phase{name: name, pods: a.n}, func() error {
		_, err := each(numbered(a.n), clients, func(pod string) error {
			object := podNamed(app+"-"+pod, app)
			if app == "spread-1" {
				object.OwnerReferences = []metav1.OwnerReference{a.owner}
			}
			began := time.Now()
			if _, err := p.client.CoreV1().Pods(namespace).Create(ctx, object,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				return fmt.Errorf("create pod: %w", err)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	if a.base == 0 {
		a.base = p99
	}
	a.report.row(name, millis(p50), millis(p99), millis(p99-a.base), perPod(ph.used.cpu, a.n))
	return nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// apply creates objects of our kinds.
func (e *env) apply(ctx context.Context, texts []string) error {
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return fmt.Errorf("read object: %w", err)
		}
		if err := e.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetKind(), err)
		}
	}
	return nil
}

// sidecarSets are n sets, of which some match the app web and the others pods that do not exist.
func sidecarSets(n, matching int) (texts []string) {
	for i := range n {
		app := "web"
		if i >= matching {
			app = fmt.Sprintf("absent-%d", i)
		}
		texts = append(texts, fmt.Sprintf(`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: s-%d},
spec: {selector: {matchLabels: {app: %s}}, updateStrategy: {type: RollingUpdate, maxUnavailable: %s}, containers: [
{name: side-%[1]d, image: "registry.example.com/shop/side:1", podInjectPolicy: BeforeAppContainer,
shareVolumePolicy: {type: disabled}}]}}`,
			i, app, share))
	}
	return texts
}

// spreads are WorkloadSpreads over the zones of the nodes.
func spreads(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf(`{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread,
metadata: {name: spread-%d, namespace: %s}, spec: {
targetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: spread-%[1]d}, subsets: [
{name: one, maxReplicas: 50%%, requiredNodeSelectorTerm: {matchExpressions: [
{key: topology.kubernetes.io/zone, operator: In, values: [zone-1]}]}},
{name: two}]}}`, i, namespace))
	}
	return texts
}

// budgets are PodUnavailableBudgets of pods by their app.
func budgets(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf(`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget,
metadata: {name: budget-%d, namespace: %s, annotations: {pub.kruise.io/protect-total-replicas: "%d"}},
spec: {selector: {matchLabels: {app: budget-%[1]d}}, maxUnavailable: 50%%}}`, i, namespace, podsOfBudget))
	}
	return texts
}
