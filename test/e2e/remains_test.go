//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// remains is a CloneSet, with all that belongs to it, as a running reference wrote them, in a namespace of its own.
// What the recording's cluster has given them (UIDs, IDs of containers, bound volumes) is this cluster's.
type remains struct {
	bequest

	client    client.Client
	namespace string
	owner     types.UID
	// images that were pushed, by name.
	images map[string]image.Image
	// reports of the daemon.
	reports map[string]kruise.RuntimeContainerMeta
	// pods as they were when no manager led any more; of revisions and claims, UID and resource version.
	pods              map[string]*corev1.Pod
	revisions, claims map[string]string
}

// leaveBehind makes what the reference leaves, where there is no manager yet. Etcd holds it as v1alpha1.
func leaveBehind(t *testing.T, c *cluster.Cluster) map[string]*remains {
	t.Helper()
	if _, err := c.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-f", olderCRDs(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(t.Context(), "wait", "--for=condition=Established",
		"crd/clonesets.apps.kruise.io", "--timeout=1m"); err != nil {
		t.Fatal(err)
	}
	images := map[string]image.Image{}
	for _, name := range []string{"nginx:1.14.2", "nginx:1.15.1", "busybox:1.32"} {
		images[name] = c.Push(t, image.Spec{Name: name})
	}
	left, reports := map[string]*remains{}, recordedReports(t)
	for name, b := range bequests() {
		r := &remains{
			bequest:   b,
			client:    c.Client,
			namespace: c.Namespace(t),
			images:    images,
			reports:   reports,
			pods:      map[string]*corev1.Pod{},
		}
		r.makeSet(t)
		r.makeRevisions(t)
		r.makeClaims(t)
		r.makePods(t)
		left[name] = r
	}
	return left
}

// olderCRDs writes a file of the CRDs as OpenKruise 1.8 has them: with v1alpha1 alone and without conversion, but for
// StatefulSets.
func olderCRDs(t *testing.T) string {
	t.Helper()
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, c := range crds {
		only := "v1alpha1"
		if c.Spec.Names.Kind == "StatefulSet" {
			only = "v1beta1"
		}
		c.Spec.Conversion = nil
		c.Spec.Versions = slices.DeleteFunc(c.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name != only
		})
		c.Spec.Versions[0].Storage = true
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	file := filepath.Join(t.TempDir(), "crds.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// bequeath waits until all pods are ready, and leaves the set in its state.
func (r *remains) bequeath(t *testing.T) {
	t.Helper()
	eventually(t, r.up)
	r.revisions, r.claims = r.storedRevisions(t), r.storedClaims(t)
	if r.interrupt != nil {
		r.interrupt(r, t)
	}
}

// items are the recorded objects of a file that belong to the set.
func (r *remains) items(t *testing.T, step, file, kind string) []unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../compat/testdata/recorded", step, file))
	if err != nil {
		t.Fatal(err)
	}
	list := unstructured.UnstructuredList{}
	if err := yaml.Unmarshal(data, &list.Object); err != nil {
		t.Fatal(err)
	}
	var mine []unstructured.Unstructured
	items, _, _ := unstructured.NestedSlice(list.Object, "items")
	for i := range items {
		fields, _ := items[i].(map[string]any)
		u := unstructured.Unstructured{Object: fields}
		owner := metav1.GetControllerOf(&u)
		if u.GetKind() == kind &&
			(kind == "CloneSet" && u.GetName() == r.set || owner != nil && owner.Kind == "CloneSet" && owner.Name == r.set) {
			mine = append(mine, u)
		}
	}
	if len(mine) == 0 && kind != "PersistentVolumeClaim" {
		t.Fatalf("%s: no %s of %s in %s/%s", r.why, kind, r.set, step, file)
	}
	return mine
}

// into makes an object of what was recorded, in this cluster.
func (r *remains) into(t *testing.T, recorded *unstructured.Unstructured, object client.Object) {
	t.Helper()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "finalizers"} {
		unstructured.RemoveNestedField(recorded.Object, "metadata", field)
	}
	text, err := recorded.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace(r.namespace)
	owners := object.GetOwnerReferences()
	for i := range owners {
		owners[i].UID, owners[i].APIVersion = r.owner, cmp.Or(r.owners, owners[i].APIVersion)
	}
	object.SetOwnerReferences(owners)
}

func (r *remains) makeSet(t *testing.T) {
	t.Helper()
	recorded := r.items(t, r.step, "clonesets.v1alpha1.yaml", "CloneSet")[0]
	recorded.SetOwnerReferences(nil) // the set above it is not here
	status, _, _ := unstructured.NestedMap(recorded.Object, "status")
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"})
	r.into(t, &recorded, set)
	eventually(t, func(ctx context.Context) error { return r.client.Create(ctx, set) })
	status["observedGeneration"] = set.GetGeneration()
	set.Object["status"] = status
	if err := r.client.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	r.owner = set.GetUID()
}

func (r *remains) makeRevisions(t *testing.T) {
	t.Helper()
	for _, recorded := range r.items(t, r.step, "controllerrevisions.yaml", "ControllerRevision") {
		made := &appsv1.ControllerRevision{}
		r.into(t, &recorded, made)
		var data bytes.Buffer
		if err := json.Compact(&data, made.Data.Raw); err != nil {
			t.Fatal(err)
		}
		made.Data.Raw = data.Bytes()
		if err := r.client.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *remains) makeClaims(t *testing.T) {
	t.Helper()
	for _, recorded := range r.items(t, r.step, "pvc-cm.yaml", "PersistentVolumeClaim") {
		unstructured.RemoveNestedField(recorded.Object, "metadata", "annotations") // of its volume
		unstructured.RemoveNestedField(recorded.Object, "spec", "volumeName")
		claim := &corev1.PersistentVolumeClaim{}
		r.into(t, &recorded, claim)
		if err := r.client.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *remains) makePods(t *testing.T) {
	t.Helper()
	recorded := r.items(t, r.step, "pods.yaml", "Pod")
	for _, created := range r.items(t, "1-created", "pods.yaml", "Pod") {
		for i := range recorded {
			for _, name := range r.asCreated {
				if recorded[i].GetName() == name && created.GetName() == name {
					recorded[i] = created
				}
			}
		}
	}
	for i := range recorded {
		pod := &corev1.Pod{}
		r.into(t, &recorded[i], pod)
		status := pod.Status
		// The kubelet's part of it is as it will be; the rest was the reference's.
		if state := pod.Annotations[kruise.InPlaceUpdateStateKey]; state != "" {
			pod.Annotations[kruise.InPlaceUpdateStateKey] = r.hereRun(state)
		}
		// once its ServiceAccount is there
		eventually(t, func(ctx context.Context) error { return r.client.Create(ctx, pod) })
		r.pods[pod.Name] = pod
		for _, c := range status.Conditions {
			if c.Type == kruise.InPlaceUpdateReady || c.Type == kruise.KruisePodReadyConditionType {
				r.condition(t, pod.Name, c)
			}
		}
	}
}

// hereRun puts the digests of this cluster's images into a state, which tells the one that a container had before.
func (r *remains) hereRun(state string) string {
	const digest = len("sha256:") + 64
	prefix := "docker.io/library/nginx@"
	if at := strings.Index(state, prefix); at >= 0 {
		at += len(prefix)
		state = state[:at] + r.images["nginx:1.14.2"].Digest + state[at+digest:]
	}
	return state
}

// up says what keeps the pods from being ready, with all reported that was recorded.
func (r *remains) up(ctx context.Context) error {
	if err := r.report(ctx); err != nil {
		return err
	}
	for name := range r.pods {
		pod := &corev1.Pod{}
		if err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, pod); err != nil {
			return err
		}
		if !ready(pod) {
			return fmt.Errorf("%s/%s: %v", r.namespace, name, pod.Status.Conditions)
		}
		r.pods[name] = pod
	}
	return nil
}

// pod as it is now.
func (r *remains) pod(ctx context.Context, t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// condition writes one of the pod's.
func (r *remains) condition(t *testing.T, name string, c corev1.PodCondition) {
	t.Helper()
	pod := r.pod(t.Context(), t, name)
	before := client.StrategicMergeFrom(pod.DeepCopy())
	conditions := []corev1.PodCondition{c}
	for _, other := range pod.Status.Conditions {
		if other.Type != c.Type {
			conditions = append(conditions, other)
		}
	}
	pod.Status.Conditions = conditions
	if err := r.client.Status().Patch(t.Context(), pod, before); err != nil {
		t.Fatal(err)
	}
}

// edit writes one of the pods.
func (r *remains) edit(t *testing.T, name string, change func(*corev1.Pod)) {
	t.Helper()
	pod := r.pod(t.Context(), t, name)
	before := client.StrategicMergeFrom(pod.DeepCopy())
	change(pod)
	if err := r.client.Patch(t.Context(), pod, before); err != nil {
		t.Fatal(err)
	}
}

func (r *remains) storedRevisions(t *testing.T) map[string]string {
	t.Helper()
	var list appsv1.ControllerRevisionList
	if err := r.client.List(t.Context(), &list, client.InNamespace(r.namespace)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range list.Items {
		all[list.Items[i].Name] = string(list.Items[i].UID) + " " + list.Items[i].ResourceVersion
	}
	return all
}

func (r *remains) storedClaims(t *testing.T) map[string]string {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := r.client.List(t.Context(), &list, client.InNamespace(r.namespace)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range list.Items {
		all[list.Items[i].Name] = string(list.Items[i].UID) + " " + list.Items[i].ResourceVersion
	}
	return all
}
