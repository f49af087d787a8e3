package advancedcronjob_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A template that the type cannot hold is reported, and fields that the type does not know reach the child.
func TestUnknownFields(t *testing.T) {
	for name, c := range map[string]struct {
		why, template string
		children      int
		invalid       int
	}{
		"a number": {"no Job can be decoded", `7`, 0, 1},
		"a label": {
			why:      "it is no text",
			template: `{"metadata":{"labels":{"a":"b","c":7}},"spec":{"template":{"spec":{"containers":[{"name":"a","image":"b","new":{"x":1}}]}}}}`,
			invalid:  1,
		},
		"unknown": {
			why:      "it is kept",
			template: `{"metadata":{"labels":{"a":"b"}},"spec":{"future":{"x":1},"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}}`,
			children: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, v1beta1.JobTemplate)
			job := m.create("web")
			patch := client.RawPatch("application/merge-patch+json",
				[]byte(`{"spec":{"template":{"jobTemplate":`+c.template+`}}}`))
			stored := &readsRaw{Client: m.Server, patch: patch}
			m.restart(stored)
			m.until("00:05")
			created := m.children()
			if got := m.emitted(job, "InvalidSpec"); len(created) != c.children || len(got) != c.invalid {
				t.Errorf("%s: %d children, events %q", c.why, len(created), got)
			}
			if c.children > 0 && !slices.ContainsFunc(stored.created, func(s string) bool {
				return strings.Contains(s, `"future":{"x":1}`)
			}) {
				t.Errorf("%s: created %q", c.why, stored.created)
			}
		})
	}
}

// readsRaw is a client of objects that have a part which their Go type does not hold.
type readsRaw struct {
	client.Client

	patch   client.Patch
	created []string
}

func (r *readsRaw) Get(ctx context.Context, name client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if err := r.Client.Get(ctx, name, into, o...); err != nil {
		return err
	}
	raw, is := into.(*unstructured.Unstructured)
	if !is || raw.GetKind() != "AdvancedCronJob" {
		return nil
	}
	patch, err := r.patch.Data(into)
	if err != nil {
		return err
	}
	content, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	if content, err = jsonpatch.MergePatch(content, patch); err != nil {
		return err
	}
	return raw.UnmarshalJSON(content)
}

func (r *readsRaw) Create(ctx context.Context, object client.Object, o ...client.CreateOption) error {
	content, err := json.Marshal(object)
	if err != nil {
		return err
	}
	r.created = append(r.created, string(content))
	return r.Client.Create(ctx, object, o...)
}
