//go:build envtest

package webhooks_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

const (
	labelActive = "crr.apps.kruise.io/active"
	labelNode   = "crr.apps.kruise.io/node-name"
	labelPod    = "crr.apps.kruise.io/pod-uid"
)

func recreateRequests() entry {
	var stored *unstructured.Unstructured // by the webhook, for the policy
	at := []string{
		"spec.containers[0].preStop", "spec.containers[0].ports", "spec.containers[0].statusContext",
		"spec.containers[1].preStop",
		"spec.containers[1].statusContext", "spec.containers[2].preStop", "spec.containers[2].statusContext",
	}
	return entry{
		Kind: reviewtest.Kind{
			Name: "ContainerRecreateRequest", Spec: as(`{"podName":"web","containers":[{"name":"app"}]}`), Prepare: createPods,
			Bad: `{"containers":[]}`, Code: 400, At: []string{"spec.containers"},
			Refused: map[string][]string{"v1alpha1": at, "v1beta1": at},
			Reworded: map[string]string{
				"a deadline before the beginning":    "spec.activeDeadlineSeconds: Invalid value",
				"periods that end before they begin": "spec.strategy.terminationGracePeriodSeconds: Invalid value",
				"containers by their names alone":    "spec.containers: a string where",
			},
		}, closed: 403, text: "feature gate KruiseDaemon is off",
		own: func(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
			stored = k.New(t, "v1beta1", k.Namespace(t, g), "")
			if err := g.Client.Create(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			testRecordedRequests(t, k, g)
		},
		policy: func(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) { reviewRequests(t, k, g, stored) },
		ready: func(ctx context.Context, t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) error {
			changed := stored.DeepCopy()
			_ = unstructured.SetNestedField(changed.Object, "other", "spec", "podName")
			return reviewtest.Says(g.Client.Update(ctx, changed, client.DryRunAll), k.PolicyName(), k.PolicyName())
		},
	}
}

func createNode(t *testing.T, g *reviewtest.Ground) {
	t.Helper()
	if err := g.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}); err != nil {
		t.Fatal(err)
	}
}

// createPods has the pods of the manifests, and one more.
func createPods(t *testing.T, g *reviewtest.Ground, namespace string) {
	t.Helper()
	for name, containers := range map[string]string{
		"web":       `{"name":"app","image":"a"},{"name":"log","image":"a"}`,
		"web-4x7wz": `{"name":"nginx","image":"a"},{"name":"exporter","image":"a"}`,
		"db-0":      `{"name":"postgres","image":"a"}`,
	} {
		newPod(t, g, namespace, name, `{"nodeName":"node-1","containers":[`+containers+`]}`)
	}
}

// newPod is a pod of these containers, as JSON, on a node; each that is not an init container has run.
func newPod(t *testing.T, g *reviewtest.Ground, namespace, name, spec string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := json.Unmarshal([]byte(spec), &pod.Spec); err != nil {
		t.Fatalf("%v: %s", err, spec)
	}
	if err := g.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	for i, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, ContainerID: "containerd://" + c.Name, RestartCount: int32(i), Image: c.Image,
		})
	}
	for _, c := range pod.Spec.InitContainers {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, ContainerID: "containerd://" + c.Name, RestartCount: 7, Image: c.Image,
		})
	}
	if err := g.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// testRecordedRequests asks for what the reference was asked for, of a pod like its own, and gets what it stored.
func testRecordedRequests(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	for _, version := range plaintest.Versions() {
		recorded := reviewtest.Recorded(t, "3-updated", "containerrecreaterequests."+version+".yaml")
		if len(recorded) != 1 {
			t.Fatalf("%d are recorded", len(recorded))
		}
		want := recorded[0]
		namespace := g.Namespace(t)
		pod := newPod(t, g, namespace, "meshed", `{"nodeName":"node-1","terminationGracePeriodSeconds":2,
			"containers":[{"name":"main","image":"a"},{"name":"proxy","image":"a"}]}`)
		first := reviewtest.Field(want, "spec", "containers").([]any)[0].(map[string]any)
		pod.Status.ContainerStatuses[0].ContainerID = first["statusContext"].(map[string]any)["containerID"].(string)
		if err := g.Client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		applied := &unstructured.Unstructured{}
		if err := applied.UnmarshalJSON([]byte(want.GetAnnotations()[corev1.LastAppliedConfigAnnotation])); err != nil {
			t.Fatal(err)
		}
		if _, ok := reviewtest.Field(applied, "spec").(map[string]any); !ok {
			t.Fatal("nothing was applied")
		}
		got := k.New(t, version, namespace, plaintest.Encode(t, applied.Object["spec"]))
		if err := g.Client.Create(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		// A typed client of the reference has written the object once more, and left out what is zero.
		unstructured.RemoveNestedField(got.Object, "spec", "strategy", "orderedRecreate")
		if diff := cmp.Diff(plaintest.Encode(t, want.Object["spec"]), plaintest.Encode(t, got.Object["spec"])); diff != "" {
			t.Errorf("%s (-recorded +now):\n%s", version, diff)
		}
		labels := want.GetLabels()
		labels[labelPod], labels[labelActive] = string(pod.UID), "true"
		if diff := cmp.Diff(labels, got.GetLabels()); diff != "" {
			t.Errorf("%s: labels (-recorded +now):\n%s", version, diff)
		}
		// And such a client may write it here.
		if err := g.Client.Update(t.Context(), got); err != nil {
			t.Errorf("%s: update: %v", version, err)
		}
	}
}

// requestChanges are those of a request, in any version, with whether the policy rejects them.
func requestChanges() map[string]struct {
	change   func(*unstructured.Unstructured)
	rejected bool
} {
	spec := func(path []string, value any) func(*unstructured.Unstructured) {
		return func(r *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(r.Object, value, append([]string{"spec"}, path...)...)
		}
	}
	label := func(key, value string) func(*unstructured.Unstructured) {
		return func(r *unstructured.Unstructured) {
			labels := r.GetLabels()
			labels[key] = value
			if value == "" {
				delete(labels, key)
			}
			r.SetLabels(labels)
		}
	}
	container := func(fields map[string]any) func(*unstructured.Unstructured) {
		return spec([]string{"containers"}, []any{fields})
	}
	context := func(id string) map[string]any { return map[string]any{"containerID": id, "restartCount": int64(0)} }
	return map[string]struct {
		change   func(*unstructured.Unstructured)
		rejected bool
	}{
		"nothing":         {func(*unstructured.Unstructured) {}, false},
		"zeros":           {spec([]string{"strategy", "orderedRecreate"}, false), false},
		"same container":  {container(map[string]any{"name": "app", "statusContext": context("containerd://app")}), false},
		"no longer live":  {label(labelActive, ""), false},
		"pod":             {spec([]string{"podName"}, "other"), true},
		"container":       {container(map[string]any{"name": "log", "statusContext": context("containerd://app")}), true},
		"context":         {container(map[string]any{"name": "app", "statusContext": context("containerd://b")}), true},
		"no context":      {container(map[string]any{"name": "app"}), true},
		"policy":          {spec([]string{"strategy", "failurePolicy"}, "Ignore"), true},
		"force":           {spec([]string{"strategy", "forceRecreate"}, true), true},
		"grace":           {spec([]string{"strategy", "terminationGracePeriodSeconds"}, int64(1)), true},
		"unready grace":   {spec([]string{"strategy", "unreadyGracePeriodSeconds"}, int64(0)), true},
		"started":         {spec([]string{"strategy", "minStartedSeconds"}, int64(1)), true},
		"deadline":        {spec([]string{"activeDeadlineSeconds"}, int64(9)), true},
		"ttl":             {spec([]string{"ttlSecondsAfterFinished"}, int64(9)), true},
		"pod's label":     {label(labelPod, "other"), true},
		"no node's label": {label(labelNode, ""), true},
		"no labels":       {func(r *unstructured.Unstructured) { r.SetLabels(nil) }, true},
	}
}

// reviewRequests: what was admitted cannot change in either version, since a daemon may have begun with it.
func reviewRequests(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground, r *unstructured.Unstructured) {
	for name, c := range requestChanges() {
		for _, version := range plaintest.Versions() {
			t.Run(name+"/"+version, func(t *testing.T) {
				changed := k.New(t, version, r.GetNamespace(), "")
				if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(r), changed); err != nil {
					t.Fatal(err)
				}
				c.change(changed)
				err := g.Client.Update(t.Context(), changed, client.DryRunAll)
				if c.rejected {
					err = reviewtest.Says(err, k.PolicyName(), k.PolicyName())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
