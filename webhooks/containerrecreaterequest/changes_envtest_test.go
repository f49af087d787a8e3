//go:build envtest

package containerrecreaterequest_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
)

// changes of a request, in any version, with what the webhook answers. The webhook and the policy judge alike.
func changes() map[string]struct {
	change func(*unstructured.Unstructured)
	at     []string
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
	pod, node := "metadata.labels["+labelPod+"]", "metadata.labels["+labelNode+"]"
	return map[string]struct {
		change func(*unstructured.Unstructured)
		at     []string
	}{
		"nothing":         {func(*unstructured.Unstructured) {}, nil},
		"zeros":           {spec([]string{"strategy", "orderedRecreate"}, false), nil},
		"same container":  {container(map[string]any{"name": "app", "statusContext": context("containerd://app")}), nil},
		"a label":         {label("a", "b"), nil},
		"no longer live":  {label(labelActive, ""), nil},
		"finalizer":       {func(r *unstructured.Unstructured) { r.SetFinalizers([]string{acquired}) }, nil},
		"pod":             {spec([]string{"podName"}, "other"), []string{"spec"}},
		"container":       {container(map[string]any{"name": "log", "statusContext": context("containerd://app")}), []string{"spec"}},
		"context":         {container(map[string]any{"name": "app", "statusContext": context("containerd://b")}), []string{"spec"}},
		"no context":      {container(map[string]any{"name": "app"}), []string{"spec"}},
		"policy":          {spec([]string{"strategy", "failurePolicy"}, "Ignore"), []string{"spec"}},
		"force":           {spec([]string{"strategy", "forceRecreate"}, true), []string{"spec"}},
		"grace":           {spec([]string{"strategy", "terminationGracePeriodSeconds"}, int64(1)), []string{"spec"}},
		"unready grace":   {spec([]string{"strategy", "unreadyGracePeriodSeconds"}, int64(0)), []string{"spec"}},
		"started":         {spec([]string{"strategy", "minStartedSeconds"}, int64(1)), []string{"spec"}},
		"deadline":        {spec([]string{"activeDeadlineSeconds"}, int64(9)), []string{"spec"}},
		"ttl":             {spec([]string{"ttlSecondsAfterFinished"}, int64(9)), []string{"spec"}},
		"pod's label":     {label(labelPod, "other"), []string{pod}},
		"no pod's label":  {label(labelPod, ""), []string{pod}},
		"node's label":    {label(labelNode, "other"), []string{node}},
		"no node's label": {label(labelNode, ""), []string{node}},
		"no labels":       {func(r *unstructured.Unstructured) { r.SetLabels(nil) }, []string{pod, node}},
	}
}

// testUpdates: what was admitted cannot change in either version, since a daemon may have begun with it.
func testUpdates(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	newPod(t, g, namespace, "web", plain)
	r := stored(t, g, namespace)
	for name, c := range changes() {
		for _, version := range both {
			t.Run(name+"/"+version, func(t *testing.T) {
				changed := as(t, g, version, r)
				c.change(changed)
				err := g.Client.Update(t.Context(), changed, client.DryRunAll)
				if c.at != nil {
					reviewtest.Refused(t, err, 403, c.at...)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
	other := as(t, g, "v1beta1", r)
	changes()["pod"].change(other)
	if err := g.Client.Update(t.Context(), other); err == nil || !strings.Contains(err.Error(), "spec of ContainerRecreateRequest is immutable") {
		t.Errorf("the text is another: %v", err)
	}

	begin := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Recreating","conditions":[
		{"type":"PreRecreateGrace","status":"True","reason":"PreRecreateGrace","message":"","lastTransitionTime":"2024-05-06T07:08:09Z"}]}}`))
	if err := g.Client.Status().Patch(t.Context(), r, begin); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"moved": "2025-05-06T07:08:09Z", "odd": "now", "removed": ""} {
		changed := as(t, g, "v1alpha1", r)
		if changed.GetAnnotations()[acquired] != "2024-05-06T07:08:09Z" {
			t.Fatalf("v1alpha1 has no annotation: %v", changed.GetAnnotations())
		}
		annotations := changed.GetAnnotations()
		annotations[acquired] = value
		if value == "" {
			delete(annotations, acquired)
		}
		changed.SetAnnotations(annotations)
		t.Run("grace "+name, func(t *testing.T) {
			reviewtest.Refused(t, g.Client.Update(t.Context(), changed, client.DryRunAll), 403, "metadata.annotations["+acquired+"]")
		})
	}
	kept := as(t, g, "v1alpha1", r)
	kept.SetFinalizers([]string{acquired})
	if err := g.Client.Update(t.Context(), kept, client.DryRunAll); err != nil {
		t.Errorf("the annotation is kept: %v", err)
	}
}

// testPolicy takes the webhook away and installs the policy, which must judge changes as the webhook does.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	const policy = "kruisekit-containerrecreaterequest"
	namespace := g.Namespace(t)
	newPod(t, g, namespace, "web", plain)
	r := stored(t, g, namespace)
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "containerrecreaterequest-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the policy does not judge, or the webhook does", func(ctx context.Context) error {
		changed := newObject(t, "v1beta1", namespace, `{}`)
		if err := g.Client.Get(ctx, client.ObjectKeyFromObject(r), changed); err != nil {
			return err
		}
		_ = unstructured.SetNestedField(changed.Object, "other", "spec", "podName")
		err := g.Client.Update(ctx, changed, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), policy) {
			return errors.Join(errors.New("want a refusal by the policy"), err)
		}
		return nil
	})
	for name, c := range changes() {
		for _, version := range both {
			t.Run(name+"/"+version, func(t *testing.T) {
				changed := as(t, g, version, r)
				c.change(changed)
				err := g.Client.Update(t.Context(), changed, client.DryRunAll)
				switch {
				case c.at == nil && err != nil:
					t.Error(err)
				case c.at != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), policy)):
					t.Errorf("want a refusal by the policy, got %v", err)
				}
			})
		}
	}
}
