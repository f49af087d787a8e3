//go:build envtest

package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

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
	cluster.Eventually(t, func(ctx context.Context) error { return in.client.Create(ctx, object) })
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
