package plaintest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Versions are the two of most kinds.
func Versions() []string { return []string{"v1alpha1", "v1beta1"} }

// Request is for an object of a kind, in the namespace shop. It is an update where something is stored.
func Request(kind schema.GroupKind, version, now, stored string) admission.Request {
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "shop", Name: "web",
		Kind:   metav1.GroupVersionKind{Group: kind.Group, Version: version, Kind: kind.Kind},
		Object: runtime.RawExtension{Raw: []byte(now)},
	}}
	if stored != "" {
		r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(stored)
	}
	return r
}

// Kind is a kind of apps.kruise.io.
func Kind(name string) schema.GroupKind { return schema.GroupKind{Group: "apps.kruise.io", Kind: name} }

// Answer is that of a webhook.
type Answer = admission.Response

// Want is an answer.
type Want struct {
	// Code of a rejection; 0 for none.
	Code int32
	// Paths of the causes, with spaces between.
	Paths string
	// Text is a part of the message.
	Text     string
	Warnings int
}

// Answers compares an answer.
func Answers(t testing.TB, why string, want Want, got admission.Response) {
	t.Helper()
	text := ""
	if got.Result != nil {
		text = got.Result.Message
	}
	is := Want{Code(got), strings.Join(Paths(got), " "), want.Text, len(got.Warnings)}
	if diff := cmp.Diff(want, is); diff != "" || !strings.Contains(text, want.Text) {
		t.Errorf("%s (-want +got):\n%s%.500s\n%.500q", why, diff, text, got.Warnings)
	}
}

// Patches compares the patch of an answer, which is a list without brackets.
func Patches(t testing.TB, why, want string, got admission.Response) {
	t.Helper()
	if want != "" {
		want = "[" + want + "]"
	}
	if diff := cmp.Diff(want, string(got.Patch)); diff != "" || !got.Allowed || (got.PatchType == nil) != (want == "") {
		t.Errorf("%s: %+v (-want +got):\n%s", why, got.Result, diff)
	}
}

// Server is an API server that answers dry runs, and knows one default of pod templates.
type Server struct {
	// Rejects returns why an object cannot be created.
	Rejects func(client.Object) error
	// Asked are the kinds of the objects.
	Asked []string
}

// Client is that of the server.
func (s *Server) Client() client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			o := (&client.CreateOptions{}).ApplyOptions(opts)
			if !slices.Equal(o.DryRun, []string{metav1.DryRunAll}) {
				return errors.New("this would be stored")
			}
			raw, is := obj.(*unstructured.Unstructured)
			if is {
				s.Asked = append(s.Asked, raw.GetKind())
			} else {
				s.Asked = append(s.Asked, strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1."))
			}
			if s.Rejects != nil {
				if err := s.Rejects(obj); err != nil {
					return err
				}
			}
			if is {
				template, _ := raw.Object["template"].(map[string]any)
				if pod, is := template["spec"].(map[string]any); is && pod["dnsPolicy"] == nil {
					pod["dnsPolicy"] = "ClusterFirst"
				}
			}
			return nil
		},
	})
}
