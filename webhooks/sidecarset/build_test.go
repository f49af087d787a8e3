package sidecarset_test

import (
	"cmp"
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// spec is that of a set of one container for app=x, in either version, changed by a merge patch.
func spec(t testing.TB, patch string) string {
	t.Helper()
	const plain = `{"selector":{"matchLabels":{"app":"x"}},"containers":[{"name":"agent","image":"a:1"}]}`
	return plaintest.Patched(t, plain, patch)
}

// plainServer is an API server that knows three defaults of containers, and nothing else.
type plainServer struct {
	// fail is the error of all calls, and refuse that of dry runs.
	fail, refuse error
	// others are the sets that are listed.
	others []string
	// rules are those of the cluster for annotations of pods.
	rules string
	// unknown are the fields that it knows nothing of, by their paths in a PodTemplate.
	unknown []string
	calls   int
}

func (s *plainServer) client() client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			s.calls++
			var o client.CreateOptions
			if o.ApplyOptions(opts); o.FieldValidation == metav1.FieldValidationStrict && len(s.unknown) > 0 {
				return apierrors.NewBadRequest(
					`PodTemplate in version "v1" cannot be handled as a PodTemplate: strict decoding error: unknown field "` +
						strings.Join(s.unknown, `", unknown field "`) + `"`)
			}
			template, _ := obj.(*unstructured.Unstructured).Object["template"].(map[string]any)
			pod, _ := template["spec"].(map[string]any)
			for _, list := range []string{"containers", "initContainers"} {
				containers, _ := pod[list].([]any)
				for _, c := range containers {
					fill(c)
				}
			}
			return cmp.Or(s.refuse, s.fail)
		},
		Get: func(
			_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption,
		) error {
			s.calls++
			if s.fail != nil {
				return s.fail
			}
			return s.get(key.Name, obj)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			s.calls++
			switch list := list.(type) {
			case *appsv1.ControllerRevisionList:
				list.Items = revisions()[:1] // those of set a
			case *unstructured.UnstructuredList:
				for _, other := range s.others {
					set := unstructured.Unstructured{}
					if err := set.UnmarshalJSON([]byte(other)); err != nil {
						return err
					}
					list.Items = append(list.Items, set)
				}
			}
			return s.fail
		},
	})
}

func (s *plainServer) get(name string, obj client.Object) error {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		o.Data = map[string]string{kruise.SidecarSetPatchPodMetadataWhiteListKey: s.rules}
		return nil
	case *appsv1.ControllerRevision:
		for _, r := range revisions() {
			if r.Name == name {
				r.DeepCopyInto(o)
				return nil
			}
		}
	case *unstructured.Unstructured:
		for _, other := range s.others {
			if err := o.UnmarshalJSON([]byte(other)); err != nil || o.GetName() == name {
				return err
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, name)
}

// revisions are one of set a and one of another set.
func revisions() []appsv1.ControllerRevision {
	of := func(set, version string) appsv1.ControllerRevision {
		return appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: set + "-1", Labels: map[string]string{
				v1beta1.SidecarSetNameLabel: set, v1beta1.SidecarSetCustomVersionLabel: version,
			}},
			Revision: 1,
			Data:     runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"agent","image":"a:0"}]}}`)},
		}
	}
	return []appsv1.ControllerRevision{of("a", "v1"), of("other", "v2")}
}

func fill(container any) {
	c, ok := container.(map[string]any)
	if !ok {
		return
	}
	for key, value := range map[string]any{
		"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": map[string]any{},
	} {
		if c[key] == nil {
			c[key] = value
		}
	}
	if probe, ok := c["startupProbe"].(map[string]any); ok && probe["periodSeconds"] == nil {
		probe["periodSeconds"] = int64(10)
	}
}

func newWebhooks(t testing.TB, s *plainServer, o sidecarset.Options) kinds.Webhooks {
	t.Helper()
	w, err := sidecarset.New(s.client(), s.client(), o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// newRequest is an update when something is stored.
func newRequest(version, now, stored string) admission.Request {
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: "a",
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "SidecarSet"},
		Object: runtime.RawExtension{Raw: []byte(now)},
	}}
	if stored != "" {
		r.Operation, r.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(stored)}
	}
	return r
}

// object is a set with a spec of this patch.
func object(t testing.TB, version, patch string) string {
	t.Helper()
	return `{"apiVersion":"apps.kruise.io/` + version + `","kind":"SidecarSet","metadata":{"name":"a","uid":"1"},"spec":` +
		spec(t, patch) + `}`
}
