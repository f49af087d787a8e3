package process

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A leader warns of workloads in kube-system where the policy reserves this namespace.
func TestReserved(t *testing.T) {
	both := []string{"kube-system", "kruise-system"}
	cases := map[string]struct {
		why       string
		namespace string
		reserved  []string
		missing   error
		has       string
		lists     int
		warned    string
	}{
		"nothing there":     {why: "no workload loses its pods", reserved: both, lists: 7},
		"a DaemonSet":       {why: "new nodes get no pod", reserved: both, has: "DaemonSet", lists: 7, warned: "DaemonSet"},
		"not reserved":      {why: "the list was edited", reserved: both[1:], has: "DaemonSet"},
		"no policy":         {why: "before Kubernetes 1.30", missing: errors.New("no matches"), has: "DaemonSet"},
		"another namespace": {why: "the manager serves shop alone", namespace: "shop", reserved: both, has: "DaemonSet"},
		"this one namespace": {
			why:       "the manager serves it",
			namespace: "kube-system",
			reserved:  both,
			has:       "CloneSet",
			lists:     7,
			warned:    "CloneSet",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			lists := 0
			reader := interceptor.NewClient(nil, interceptor.Funcs{
				Get: func(
					_ context.Context, _ runtimeclient.WithWatch, key runtimeclient.ObjectKey, into runtimeclient.Object,
					_ ...runtimeclient.GetOption,
				) error {
					policy := into.(*admissionregistrationv1.ValidatingAdmissionPolicy)
					policy.Name = key.Name
					policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
						MatchExpressions: []metav1.LabelSelectorRequirement{
							{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: c.reserved},
						},
					}}
					return c.missing
				},
				List: func(
					_ context.Context, _ runtimeclient.WithWatch, into runtimeclient.ObjectList, opts ...runtimeclient.ListOption,
				) error {
					var lo runtimeclient.ListOptions
					lo.ApplyOptions(opts)
					page := into.(*metav1.PartialObjectMetadataList)
					if lists++; lo.Limit != 1 || lo.Namespace != "kube-system" {
						t.Errorf("%s: limit %d in %q", page.Kind, lo.Limit, lo.Namespace)
					}
					if page.Kind == c.has+"List" {
						page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
							Namespace: lo.Namespace, Name: "agent",
						}}}
					}
					return nil
				},
			})
			events := record.NewFakeRecorder(9)
			r := &reserved{reader: reader, recorder: events, namespace: c.namespace}
			if err := r.Start(t.Context()); err != nil {
				t.Error(err)
			}
			close(events.Events)
			said := ""
			for event := range events.Events {
				said += event
			}
			if lists != c.lists || (c.warned != "") != strings.Contains(said, "NamespaceReserved") ||
				!strings.Contains(said, c.warned) {
				t.Errorf("%s: %d lists, events %q", c.why, lists, said)
			}
		})
	}
}
