package deletion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
)

const (
	key       = "policy.kruise.io/delete-protection"
	uid       = "b5b7c6a2"
	always    = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"
	cascading = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading"
)

// review is a request for a deletion.
type review struct {
	group, version, kind string
	// stored is the old object. Without it the object is protected by label.
	stored, label string
	change        func(*admission.Request)
}

func (r review) request(t *testing.T) admission.Request {
	t.Helper()
	raw := []byte(r.stored)
	if r.stored == "" {
		raw = stored(t, r.label, nil)
	}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Delete, Name: "x", OldObject: runtime.RawExtension{Raw: raw},
		Kind:     metav1.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind},
		UserInfo: authenticationv1.UserInfo{Username: "tenant"},
	}}
	if r.change != nil {
		r.change(&req)
	}
	return req
}

// stored is an object with a label, and with what a merge would add to its metadata.
func stored(t *testing.T, label string, more map[string]any) []byte {
	t.Helper()
	metadata := map[string]any{"name": "x", "uid": uid, "labels": map[string]any{key: label}}
	maps.Copy(metadata, more)
	raw, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"replicas": 2}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// world is what the API server has, and what was asked of it.
type world struct {
	// uid and label are those of the live object under review.
	uid, label string
	// versions of the live definition.
	versions []any
	// pods, claims and instances are pages of objects.
	pods, claims, instances [][]live
	// fail is the last part of a call that fails.
	fail string
	// terminating means that namespaces are.
	terminating bool

	calls []string
}

// live is a pod, claim or custom resource: terminating, or in a phase.
type live struct {
	terminating bool
	phase       corev1.PersistentVolumeClaimPhase
}

func newWorld(label string) *world {
	return &world{uid: uid, label: label, versions: []any{map[string]any{"name": "v1", "served": true, "storage": true}}}
}

func (w *world) client() client.Reader {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(
			ctx context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption,
		) error {
			return w.get(ctx, key, into)
		},
		List: func(ctx context.Context, _ client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			return w.list(ctx, into, opts...)
		},
	})
}

func (w *world) call(ctx context.Context, what string) error {
	w.calls = append(w.calls, what)
	if w.fail == what {
		return errors.New("no answer")
	}
	return ctx.Err()
}

func (w *world) get(ctx context.Context, name client.ObjectKey, into client.Object) error {
	kind := into.GetObjectKind().GroupVersionKind()
	if err := w.call(ctx, "get "+kind.Kind+" "+name.Name); err != nil {
		return err
	}
	into.SetUID(types.UID(w.uid))
	into.SetLabels(map[string]string{key: w.label})
	if w.terminating {
		now := metav1.Unix(0, 0)
		into.SetDeletionTimestamp(&now)
	}
	if definition, ok := into.(*unstructured.Unstructured); ok {
		return unstructured.SetNestedField(definition.Object, map[string]any{
			"group": "example.com", "names": map[string]any{"kind": "Toaster", "listKind": "Toasters"}, "versions": w.versions,
		}, "spec")
	}
	return nil
}

func (w *world) list(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	what := "list " + into.GetObjectKind().GroupVersionKind().Kind
	all := w.instances
	claims, isClaims := into.(*corev1.PersistentVolumeClaimList)
	switch {
	case isClaims:
		what, all = "list claims of "+o.Namespace, w.claims
	case what == "list PodList":
		what, all = fmt.Sprintf("list pods of %s, %s", o.Namespace, o.FieldSelector), w.pods
	}
	if err := w.call(ctx, what); err != nil {
		return err
	}
	page := 0
	if o.Continue != "" {
		_, _ = fmt.Sscan(o.Continue, &page)
	}
	if page+1 < len(all) {
		into.SetContinue(fmt.Sprint(page + 1))
	}
	if page >= len(all) {
		return nil
	}
	for _, one := range all[page] {
		var meta metav1.ObjectMeta
		if one.terminating {
			now := metav1.Unix(0, 0)
			meta.DeletionTimestamp = &now
		}
		if isClaims {
			claims.Items = append(claims.Items, corev1.PersistentVolumeClaim{
				ObjectMeta: meta, Status: corev1.PersistentVolumeClaimStatus{Phase: one.phase},
			})
			continue
		}
		list := into.(*metav1.PartialObjectMetadataList)
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: meta})
	}
	return nil
}

func newGuard(t *testing.T, w *world, o deletion.Options) *deletion.Guard {
	t.Helper()
	g, err := deletion.New(w.client(), o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// protected are all kinds in all their versions.
func protected() []review {
	var all []review
	for _, k := range protection.Kinds() {
		for _, version := range k.Versions {
			all = append(all, review{group: k.Group, version: version, kind: k.Kind})
		}
	}
	return slices.Clip(all)
}
