//go:build envtest

package process_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// inherited are the objects that a running reference left in etcd, in this cluster.
type inherited struct {
	client client.Client
	// all objects as they were left, in the version in which they are stored.
	all []*unstructured.Unstructured
	// uids that the objects have here, by those of the recording.
	uids map[types.UID]types.UID
}

// recordedObjects are those of a step of the recording, and of the kinds that it lacks constructed ones, in the version
// and the shape in which OpenKruise up to 1.8 stored them.
func recordedObjects(t *testing.T, step string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../test/compat/testdata/recorded", step, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "testdata/constructed.yaml")
	var all []*unstructured.Unstructured
	for _, file := range files {
		name, newer := strings.CutSuffix(filepath.Base(file), ".v1beta1.yaml")
		name, older := strings.CutSuffix(name, ".v1alpha1.yaml")
		if both := newer || older; both && older == (name == "statefulsets") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		recorded := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &recorded.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects := []any{recorded.Object}
		if recorded.IsList() {
			objects, _, _ = unstructured.NestedSlice(recorded.Object, "items")
		}
		for _, fields := range objects {
			object := &unstructured.Unstructured{Object: fields.(map[string]any)}
			if object.GetName() != "kube-root-ca.crt" && object.GetDeletionTimestamp() == nil {
				all = append(all, settled(t, object))
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("nothing is recorded in %s", step)
	}
	return rehashed(t, all)
}

// rehashed gives the revisions of DaemonSets other hashes. Those of OpenKruise follow from Go structs of its libraries,
// and no other version can compute them.
func rehashed(t *testing.T, all []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	var pairs []string
	for _, object := range all {
		if owner := metav1.GetControllerOf(object); object.GetKind() == "ControllerRevision" && owner != nil &&
			owner.Kind == "DaemonSet" {
			hash := []byte(object.GetLabels()["controller-revision-hash"])
			other := slices.Clone(hash)
			slices.Reverse(other)
			pairs = append(pairs, string(hash), string(other))
		}
	}
	if len(pairs) == 0 {
		t.Fatal("no revision of a DaemonSet is recorded")
	}
	for _, object := range all {
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := object.UnmarshalJSON([]byte(strings.NewReplacer(pairs...).Replace(string(text)))); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// settled changes what the recording has of its time and of its version: no run is due, nothing has ended long enough
// ago to be deleted, and owners and revisions have the form of OpenKruise 1.8.
func settled(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	set := func(value any, path ...string) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	switch object.GetKind() {
	case "AdvancedCronJob":
		set(true, "spec", "paused")
	case "ImagePullJob", "ImageListPullJob", "EphemeralJob":
		if _, ended, _ := unstructured.NestedString(object.Object, "status", "completionTime"); ended {
			set(time.Now().UTC().Format(time.RFC3339), "status", "completionTime")
		}
	case "ControllerRevision":
		// Libraries before 0.34 encoded this.
		if _, plain, _ := unstructured.NestedMap(object.Object, "data", "spec", "template", "metadata"); plain {
			set(nil, "data", "spec", "template", "metadata", "creationTimestamp")
		}
		// 1.5.0 wrote revisions of SidecarSets without this.
		if object.GetLabels()["kruise.io/sidecarset-name"] == "fixtures-hot" {
			unstructured.RemoveNestedField(object.Object, "data", "spec", "$patch")
		}
	case "Pod":
		// Releases up to 1.9 wrote the older key alone.
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "pub.kruise.io/related-pub")
	}
	owners := object.GetOwnerReferences()
	for i := range owners {
		if owners[i].Kind != "StatefulSet" {
			owners[i].APIVersion = strings.Replace(owners[i].APIVersion, "kruise.io/v1beta1", "kruise.io/v1alpha1", 1)
		}
	}
	object.SetOwnerReferences(owners)
	return object
}

// inherit stores what was recorded: owners before what they own, with the UIDs of this cluster.
func inherit(t *testing.T, c client.Client, recorded []*unstructured.Unstructured) *inherited {
	t.Helper()
	in := &inherited{client: c, uids: map[types.UID]types.UID{}}
	known := map[types.UID]bool{}
	for _, object := range recorded {
		known[object.GetUID()] = true
	}
	for left := recorded; len(left) > 0; {
		var later []*unstructured.Unstructured
		for _, object := range left {
			missing := func(uid types.UID) bool { return known[uid] && in.uids[uid] == "" }
			owned := slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
				return missing(o.UID)
			})
			if owned || slices.ContainsFunc(probed(object), func(pod map[string]any) bool { return missing(uidOf(pod)) }) {
				later = append(later, object)
				continue
			}
			in.store(t, object)
		}
		if len(later) == len(left) {
			t.Fatalf("%d objects own each other", len(later))
		}
		left = later
	}
	return in
}

// probed are the entries of a NodePodProbe.
func probed(object *unstructured.Unstructured) []map[string]any {
	spec, _ := object.Object["spec"].(map[string]any)
	list, _ := spec["podProbes"].([]any)
	var entries []map[string]any
	for _, entry := range list {
		entries = append(entries, entry.(map[string]any))
	}
	return entries
}

func uidOf(entry map[string]any) types.UID { return types.UID(fmt.Sprint(entry["uid"])) }

// store creates an object and its status.
func (in *inherited) store(t *testing.T, recorded *unstructured.Unstructured) {
	t.Helper()
	object := recorded.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	owners := object.GetOwnerReferences()
	for i := range owners {
		if uid := in.uids[owners[i].UID]; uid != "" {
			owners[i].UID = uid
		}
	}
	object.SetOwnerReferences(owners)
	for _, pod := range probed(object) {
		pod["uid"] = string(in.uids[uidOf(pod)])
	}
	status, has, _ := unstructured.NestedMap(object.Object, "status")
	eventually(t, func(ctx context.Context) error { return in.client.Create(ctx, object) })
	in.uids[recorded.GetUID()] = object.GetUID()
	if has {
		if _, counts := status["observedGeneration"]; counts {
			status["observedGeneration"] = object.GetGeneration()
		}
		object.Object["status"] = status
		if err := in.client.Status().Update(t.Context(), object); err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("store the status of %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	in.all = append(in.all, object)
}

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
	applyAll(t, c, "-k", "../../../config/default")

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
	within(t, 4*time.Minute, ready)
	within(t, 4*time.Minute, func(ctx context.Context) error {
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
