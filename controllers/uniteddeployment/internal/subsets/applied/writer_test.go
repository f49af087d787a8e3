package applied_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
)

const manager = "kruisekit-test"

func workload() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": "1",
		},
		"spec": map[string]any{"replicas": int64(2)},
	}}
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager:    manager,
		Operation:  operation,
		FieldsType: "FieldsV1",
		APIVersion: "apps/v1",
		FieldsV1:   &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

// An object that another program wrote for the same owner costs one write more, once.
func TestInherit(t *testing.T) {
	const owning, other = `{"f:metadata":{"f:ownerReferences":{}},"f:spec":{"f:replicas":{}}}`,
		`{"f:spec":{"f:replicas":{}}}`
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("no"))
	cases := map[string]struct {
		why     string
		uid     string
		entries []metav1.ManagedFieldsEntry
		reading error
		writing error
		writes  int
		fails   bool
	}{
		"another reconciler": {
			why:     "it wrote the owner reference",
			uid:     "1",
			entries: []metav1.ManagedFieldsEntry{entry("manager", metav1.ManagedFieldsOperationUpdate, owning)},
			writes:  1,
		},
		"a user": {
			why:     "kubectl scale wrote replicas alone",
			uid:     "1",
			entries: []metav1.ManagedFieldsEntry{entry("kubectl", metav1.ManagedFieldsOperationUpdate, other)},
		},
		"the reconciler": {
			why: "it has applied the object before",
			uid: "1",
			entries: []metav1.ManagedFieldsEntry{
				entry("manager", metav1.ManagedFieldsOperationUpdate, owning),
				entry(manager, metav1.ManagedFieldsOperationApply, owning),
			},
		},
		"another object": {
			why:     "it has taken the place of the observed one",
			uid:     "2",
			entries: []metav1.ManagedFieldsEntry{entry("manager", metav1.ManagedFieldsOperationUpdate, owning)},
		},
		"no object": {
			why: "it was deleted", uid: "1", reading: apierrors.NewNotFound(schema.GroupResource{}, "web"),
		},
		"the read is refused": {"the pass reports it", "1", nil, denied, nil, 0, true},
		"the write is refused": {
			why:     "the pass reports it",
			uid:     "1",
			entries: []metav1.ManagedFieldsEntry{entry("manager", metav1.ManagedFieldsOperationUpdate, owning)},
			writing: denied,
			writes:  1,
			fails:   true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			writes := 0
			api := interceptor.NewClient(nil, interceptor.Funcs{
				Get: func(
					_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption,
				) error {
					live := workload()
					live.SetManagedFields(c.entries)
					into.(*unstructured.Unstructured).Object = live.Object
					return c.reading
				},
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
					writes++
					data, err := p.Data(o)
					if err != nil || !json.Valid(data) || !strings.Contains(string(data), manager) {
						t.Errorf("patch %s, %v", data, err)
					}
					return c.writing
				},
			})
			w := applied.Writer{Client: api, Live: api, Manager: manager}
			rendered := workload()
			rendered.SetUID("")
			err := w.Inherit(t.Context(), rendered, "1")
			if c.uid != "1" {
				writes, err = 0, w.Inherit(t.Context(), rendered, "2")
			}
			if writes != c.writes || (err != nil) != c.fails {
				t.Errorf("%s: %d writes, %v", c.why, writes, err)
			}
		})
	}
}

// An apply has the fields that were rendered and no others, in the name of the manager, and the answer is the stored
// object.
func TestApply(t *testing.T) {
	rendered := workload()
	api := interceptor.NewClient(nil, interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, all ...client.PatchOption) error {
			data, err := p.Data(o)
			want, _ := rendered.MarshalJSON()
			options := (&client.PatchOptions{}).ApplyOptions(all)
			if err != nil || string(data) != string(want) || options.FieldManager != manager || options.Force == nil ||
				!*options.Force {
				t.Errorf("patch %s by %+v, %v", data, options, err)
			}
			o.SetResourceVersion("7")
			return nil
		},
	})
	answer, err := applied.Writer{Client: api, Manager: manager}.Apply(t.Context(), rendered)
	if err != nil || answer.GetResourceVersion() != "7" || rendered.GetResourceVersion() != "" {
		t.Errorf("answer %v, %v", answer, err)
	}
}
