//go:build envtest

package imagepull_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
)

// testPolicy has the webhooks judge some jobs, then takes them away and installs the policy, which must judge alike.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	t.Run("Webhooks", func(t *testing.T) { judgeAll(t, g, namespace, "denied the request") })
	g.Withdraw(t)
	reviewtest.Until(t, "the webhooks are still asked", func(ctx context.Context) error {
		plain := newObject(t, job, "v1beta1", namespace, `{"image":"","completionPolicy":{}}`)
		if err := g.Client.Create(ctx, plain, client.DryRunAll); err != nil {
			return err
		}
		if reviewtest.Field(plain, "spec", "pullPolicy") != nil {
			return errors.New("there are defaults")
		}
		return nil
	})
	stored := storeFaults(t, g, namespace)
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "imagepull-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	reviewtest.Until(t, "the policy does not judge", func(ctx context.Context) error {
		return reviewtest.Says(g.Client.Create(ctx, newObject(t, job, "v1beta1", namespace, `{"image":"","completionPolicy":{}}`), client.DryRunAll), "kruisekit-imagepull", "spec.image")
	})
	t.Run("Policy", func(t *testing.T) { judgeAll(t, g, namespace, "kruisekit-imagepull") })
	for name, o := range stored {
		o.SetLabels(map[string]string{"touched": "true"})
		if err := g.Client.Update(t.Context(), o); err != nil {
			t.Errorf("%s: a fault that was there: %v", name, err)
		}
	}
	set(t, stored["percentage"], "parallelism", `"60%"`)
	if err := reviewtest.Says(g.Client.Update(t.Context(), stored["percentage"]), "kruisekit-imagepull", "spec.parallelism"); err != nil {
		t.Error(err)
	}
}

// storeFaults makes objects with one fault each, before anybody judges.
func storeFaults(t *testing.T, g *reviewtest.Ground, namespace string) map[string]*unstructured.Unstructured {
	t.Helper()
	stored := map[string]*unstructured.Unstructured{}
	for name, c := range map[string]struct{ resource, spec string }{
		"no image":        {job, `{"image":"","completionPolicy":{}}`},
		"no images":       {list, `{"images":[],"completionPolicy":{}}`},
		"same image":      {list, `{"images":["a","a"],"completionPolicy":{}}`},
		"too many":        {list, `{"images":[` + many(300) + `],"completionPolicy":{}}`},
		"percentage":      {job, `{"image":"a","completionPolicy":{},"parallelism":"50%"}`},
		"unknown end":     {job, `{"image":"a","completionPolicy":{"type":"Soon"}}`},
		"never, deadline": {job, `{"image":"a","completionPolicy":{"type":"Never","activeDeadlineSeconds":700}}`},
		"never, ttl":      {job, `{"image":"a","completionPolicy":{"type":"Never","ttlSecondsAfterFinished":7}}`},
		"short deadline":  {job, `{"image":"a","completionPolicy":{"activeDeadlineSeconds":5}}`},
		"nodes or pods":   {job, `{"image":"a","completionPolicy":{},"selector":{},"podSelector":{}}`},
		"names or labels": {job, `{"image":"a","completionPolicy":{},"selector":{"names":["n"],"matchLabels":{"a":"b"}}}`},
	} {
		o := newObject(t, c.resource, "v1beta1", namespace, c.spec)
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		stored[name] = o
	}
	return stored
}

func judgeAll(t *testing.T, g *reviewtest.Ground, namespace, judge string) {
	create := map[string]struct{ resource, spec, want string }{
		"no image":            {job, `{"image":"","completionPolicy":{}}`, "spec.image"},
		"no images":           {list, `{"images":[],"completionPolicy":{}}`, "spec.images"},
		"many images":         {list, `{"images":[` + many(255) + `],"completionPolicy":{}}`, ""},
		"too many images":     {list, `{"images":[` + many(256) + `],"completionPolicy":{}}`, "spec.images"},
		"same image":          {list, `{"images":["a","b","a"],"completionPolicy":{}}`, "spec.images"},
		"no end":              {job, `{"image":"a","completionPolicy":{"type":""}}`, ""},
		"unknown end":         {job, `{"image":"a","completionPolicy":{"type":"Soon"}}`, "spec.completionPolicy.type"},
		"never":               {list, `{"images":["a"],"completionPolicy":{"type":"Never"}}`, ""},
		"never, deadline":     {job, `{"image":"a","completionPolicy":{"type":"Never","activeDeadlineSeconds":700}}`, "spec.completionPolicy.activeDeadlineSeconds"},
		"never, ttl":          {list, `{"images":["a"],"completionPolicy":{"type":"Never","ttlSecondsAfterFinished":7}}`, "spec.completionPolicy.ttlSecondsAfterFinished"},
		"deadline":            {job, `{"image":"a","completionPolicy":{"activeDeadlineSeconds":600}}`, ""},
		"short deadline":      {list, `{"images":["a"],"completionPolicy":{"activeDeadlineSeconds":599}}`, "spec.completionPolicy.activeDeadlineSeconds"},
		"shorter timeout":     {job, `{"image":"a","completionPolicy":{"activeDeadlineSeconds":5},"pullPolicy":{"timeoutSeconds":5}}`, ""},
		"nodes or pods":       {job, `{"image":"a","completionPolicy":{},"selector":{},"podSelector":{}}`, "spec.selector"},
		"names or labels":     {job, `{"image":"a","completionPolicy":{},"selector":{"names":["n"],"matchLabels":{"a":"b"}}}`, "spec.selector.names"},
		"names or terms":      {job, `{"image":"a","completionPolicy":{},"selector":{"names":["n"],"matchExpressions":[{"key":"a","operator":"Exists"}]}}`, "spec.selector.names"},
		"names, empty labels": {job, `{"image":"a","completionPolicy":{},"selector":{"names":["n"],"matchLabels":{},"matchExpressions":[]}}`, ""},
		"labels, no names":    {job, `{"image":"a","completionPolicy":{},"selector":{"names":[],"matchLabels":{"a":"b"}}}`, ""},
	}
	for text, good := range map[string]bool{
		`4`: true, `0`: true, `-1`: false, `"4"`: true, `"0"`: true, `"+4"`: true, `"-0"`: true, `"-1"`: false, `"50%"`: false, `"abc"`: false, `""`: false, `"4 "`: false,
	} {
		c := struct{ resource, spec, want string }{job, `{"image":"a","completionPolicy":{},"parallelism":` + text + `}`, ""}
		if !good {
			c.want = "spec.parallelism"
		}
		create["parallelism "+text] = c
	}
	for name, c := range create {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				err := g.Client.Create(t.Context(), newObject(t, c.resource, version, namespace, c.spec), client.DryRunAll)
				if err := reviewtest.Says(err, judge, c.want); err != nil {
					t.Error(err)
				}
			})
		}
	}
	update := map[string]struct{ spec, field, value, want string }{
		"secrets":          {`{"image":"a","completionPolicy":{},"pullSecrets":["s"]}`, "pullSecrets", `["t"]`, "spec.pullSecrets is immutable"},
		"no more secrets":  {`{"image":"a","completionPolicy":{},"pullSecrets":["s"]}`, "pullSecrets", `[]`, "spec.pullSecrets is immutable"},
		"no secrets still": {`{"image":"a","completionPolicy":{}}`, "pullSecrets", `[]`, ""},
		"image":            {`{"image":"a","completionPolicy":{}}`, "image", `"b"`, ""},
	}
	for name, c := range update {
		t.Run(name, func(t *testing.T) {
			o := newObject(t, job, "v1beta1", namespace, c.spec)
			if err := g.Client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			set(t, o, c.field, c.value)
			if err := reviewtest.Says(g.Client.Update(t.Context(), o), judge, c.want); err != nil {
				t.Error(err)
			}
		})
	}
}

// many images, each in quotes.
func many(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"app:%d"`, i)
	}
	return strings.Join(all, ",")
}
