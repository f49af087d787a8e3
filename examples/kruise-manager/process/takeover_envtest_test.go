//go:build envtest

package process_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// nodes creates those on which the recorded pods run, as their kubelets report them.
func nodes(t *testing.T, c client.Client) {
	t.Helper()
	for i := range 3 {
		name := fmt.Sprintf("node-%d", i+1)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
		}}
		if err := c.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		room := corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("16Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
		node.Status.Capacity, node.Status.Allocatable = room, room
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := c.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		node.Spec.Taints = nil // API servers taint new nodes
		if err := c.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
}

// gauged returns the values of a metric of this process by controller.
func gauged(t *testing.T, name, label string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, pair := range m.GetLabel() {
				if pair.GetName() == label {
					values[pair.GetValue()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	return values
}

// rest returns an error until the controllers have reconciled more often than before and no controller has anything to
// do.
func rest(t *testing.T, before map[string]float64, controllers []string) error {
	t.Helper()
	passes := gauged(t, "controller_runtime_reconcile_total", "controller")
	var all []error
	for _, name := range controllers {
		if passes[name] == before[name] {
			all = append(all, fmt.Errorf("%s has reconciled nothing", name))
		}
	}
	for name, n := range gauged(t, "controller_runtime_active_workers", "controller") {
		if n > 0 {
			all = append(all, fmt.Errorf("%s reconciles", name))
		}
	}
	for name, n := range gauged(t, "workqueue_depth", "name") {
		if n > 0 {
			all = append(all, fmt.Errorf("%d objects wait for %s", int(n), name))
		}
	}
	return errors.Join(all...)
}

// controllers are those of the kinds that were left.
func (in *inherited) controllers() []string {
	names := map[string]bool{}
	for _, object := range in.all {
		if gvk := object.GroupVersionKind(); strings.HasSuffix(gvk.Group, "kruise.io") && gvk.Kind != "NodeImage" {
			names[strings.ToLower(gvk.Kind)+"-controller"] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// names are those of all objects of a kind, with the values that a takeover must leave as they are.
func (in *inherited) names(
	t *testing.T, gvk schema.GroupVersionKind, also func(u *unstructured.Unstructured) string,
) map[string]string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := in.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for i := range list.Items {
		u := &list.Items[i]
		names[u.GetNamespace()+"/"+u.GetName()] = fmt.Sprintf("%s deleted %v %s",
			u.GetUID(), u.GetDeletionTimestamp() != nil, also(u))
	}
	return names
}

// kept are pods with their specs, revisions with their versions, claims, and the generations of the kinds, before and
// after.
func (in *inherited) kept(t *testing.T) map[string]map[string]string {
	t.Helper()
	spec := func(u *unstructured.Unstructured) string { return fmt.Sprint(u.Object["spec"]) }
	generation := func(u *unstructured.Unstructured) string { return fmt.Sprint(u.GetGeneration()) }
	version := func(u *unstructured.Unstructured) string { return u.GetResourceVersion() }
	all := map[string]map[string]string{
		"Pod":                   in.names(t, corev1.SchemeGroupVersion.WithKind("PodList"), spec),
		"PersistentVolumeClaim": in.names(t, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"), spec),
		"ControllerRevision": in.names(t,
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevisionList"}, version),
		"ConfigMap": in.names(t, corev1.SchemeGroupVersion.WithKind("ConfigMapList"), version),
	}
	for _, object := range in.all {
		gvk := object.GroupVersionKind()
		if strings.HasSuffix(gvk.Group, "kruise.io") && all[gvk.Kind] == nil {
			all[gvk.Kind] = in.names(t, gvk.GroupVersion().WithKind(gvk.Kind+"List"), generation)
		}
	}
	return all
}

// TestTakeoverOfOlderVersions starts two replicas on objects of all kinds that a running reference left in etcd, in its
// versions, beside objects of the newer version. No replica runs that could convert what the caches of these list, as
// in every restart of all replicas later. Nothing is created, deleted or recreated, and no spec is written.
func TestTakeoverOfOlderVersions(t *testing.T) {
	t.Parallel()
	at := address(t)
	c := cluster.Start(t, cluster.Options{Private: true})
	live, err := client.New(c.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"kruise-system", "kruise-daemon-config", "fixtures"} {
		if _, err := c.Kubectl(t.Context(), "create", "namespace", n); err != nil {
			t.Fatal(err)
		}
	}
	applyAll(t, c, "-f", storedAs(t, c))
	nodes(t, live)
	in := inherit(t, live, recordedObjects(t, "3-updated"))
	applyAll(t, c, "-f", write(t, coldObjects("v1alpha1")))
	was := in.kept(t)
	applyAll(t, c, "-k", conversionCRDs)
	applyAll(t, c, "-f", write(t, coldObjects("v1beta1")))
	said := applyAll(t, c, "-k", "../../../config/default")
	for _, want := range []string{
		"deployment.apps/kruise-controller-manager", "service/kruise-webhook-service",
		"poddisruptionbudget.policy/kruise-controller-manager",
		"role.rbac.authorization.k8s.io/kruise-manager", "daemonset.apps/kruise-daemon", "clonesets.apps.kruise.io",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("there is no %s in\n%s", want, said)
		}
	}

	before := gauged(t, "controller_runtime_reconcile_total", "controller")
	flags := []string{
		"--namespace=", "--feature-gates=ImagePullJobGate=true,ResourceDistributionGate=true",
	}
	replicas := map[string]*started{
		"a": start(t, c, "kruise-system", flags...), "b": start(t, c, "kruise-system", flags...),
	}
	ready := func(ctx context.Context) error {
		var all []error
		for name, s := range replicas {
			all = append(all, publish(ctx, c, name, at, s))
		}
		return errors.Join(all...)
	}
	// On a busy machine, lists that failed before a replica converted are repeated late.
	cluster.Within(t, 4*time.Minute, ready)
	cluster.Within(t, 4*time.Minute, func(ctx context.Context) error {
		if holder(ctx, c, "kruise-system") == "" {
			return errors.New("no replica leads")
		}
		return errors.Join(ready(ctx), rest(t, before, in.controllers()))
	})
	for kind, objects := range in.kept(t) {
		for _, those := range []map[string]string{was[kind], objects} {
			// coldObjects, and their revisions
			maps.DeleteFunc(those, func(name, _ string) bool { return strings.Contains(name, "/v1") })
		}
		if diff := cmp.Diff(was[kind], objects); diff != "" {
			t.Errorf("%s changed (-left +taken over):\n%s", kind, diff)
		}
	}
	in.allKinds(t)
	for _, plural := range []string{
		"podunavailablebudgets.%s.policy.kruise.io", "workloadspreads.%s.apps.kruise.io", "sidecarsets.%s.apps.kruise.io",
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			names, err := c.Kubectl(t.Context(), "get", fmt.Sprintf(plural, version), "-A", "-o",
				"jsonpath={.items[*].metadata.name}")
			if err != nil || !strings.Contains(names, "v1alpha1 v1beta1") {
				t.Errorf("%s in %s are %q: %v", plural, version, names, err)
			}
		}
	}
	t.Run("migration", func(t *testing.T) { in.testMigration(t, c) })
	for name, s := range replicas {
		if err := s.stop(); err != nil {
			t.Errorf("replica %s ended with %v", name, err)
		}
	}
	t.Run("removal", func(t *testing.T) { testRemoval(t, c) })
}

// allKinds fails unless an object of each kind was left.
func (in *inherited) allKinds(t *testing.T) {
	t.Helper()
	left := map[string]bool{}
	for _, object := range in.all {
		left[object.GetKind()] = true
	}
	crds, err := crd.Hub()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range crds {
		if !left[c.Spec.Names.Kind] {
			t.Errorf("no %s was left", c.Spec.Names.Kind)
		}
	}
}
