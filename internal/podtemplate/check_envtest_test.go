//go:build envtest

package podtemplate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// TestRealServer asks a real API server, and finds nothing stored afterwards.
func TestRealServer(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	namespace, gone := c.Namespace(t), c.Namespace(t)
	if err := c.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gone}}); err != nil {
		t.Fatal(err)
	}
	nobody := rest.CopyConfig(c.Config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	without, err := client.New(nobody, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const plain = `{"metadata":{"labels":{"a":"b"}},"spec":{"new":1,"containers":[{"name":"a","image":"b","volumeMounts":[{"name":"data","mountPath":"/d"}]}]}}`
	cases := map[string]struct {
		why                string
		given              time.Duration
		api                podtemplate.API
		namespace, content string
		fault              string
		want               podtemplate.Reason
	}{
		"good": {"it has all it needs", 0, c.Client, namespace, plain, "", ""},
		"wrong": {
			why:       "the field is named",
			api:       c.Client,
			namespace: namespace,
			content:   `{"spec":{"containers":[{"name":"A b","image":"b"}]}}`,
			fault:     "spec.template.spec.containers[0].name",
		},
		"no mount": {
			why:       "nothing of this name can be mounted",
			api:       c.Client,
			namespace: namespace,
			content:   strings.Replace(plain, `"data"`, `"x"`, 1),
			fault:     "spec.template.spec.containers[0].volumeMounts[0].name",
		},
		"wrong type": {"nobody can read it", 0, c.Client, namespace, `{"spec":{"containers":7}}`, "spec.template", ""},
		"no right":   {"somebody has to grant it", 0, without, namespace, plain, "", podtemplate.NotPermitted},
		"missing": {
			why:       "it was deleted meanwhile",
			api:       c.Client,
			namespace: "no-such-namespace",
			content:   plain,
			want:      podtemplate.NamespaceMissing,
		},
		"terminating":  {"nothing can be made in it", 0, c.Client, gone, plain, "", podtemplate.NamespaceTerminating},
		"out of time":  {"nobody waits any more", time.Nanosecond, c.Client, namespace, plain, "", podtemplate.TimedOut},
		"no namespace": {"it is needed", 0, c.Client, "", plain, "", podtemplate.Failed},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			verdict, err := podtemplate.Check(t.Context(), tt.api, podtemplate.Template{
				Namespace:   tt.namespace,
				Content:     decode(t, tt.content),
				Path:        field.NewPath("spec", "template"),
				Claims:      []string{"data"},
				ClaimsPath:  field.NewPath("spec", "volumeClaimTemplates"),
				TellUnknown: true,
				Timeout:     tt.given,
			})
			var unavailable *podtemplate.UnavailableError
			if got := errors.As(err, &unavailable); got != (tt.want != "") || got && unavailable.Reason != tt.want {
				t.Fatalf("%s: want %q, got %v", tt.why, tt.want, err)
			}
			if tt.fault != "" && (len(verdict.Faults) == 0 || verdict.Faults[0].Field != tt.fault) ||
				tt.fault == "" && len(verdict.Faults) > 0 {
				t.Errorf("%s: want a fault at %q, got %v", tt.why, tt.fault, verdict.Faults)
			}
			if wrote := strings.Contains(tt.content, `"new":1`); tt.want == "" &&
				(len(verdict.Unknown) == 1 && verdict.Unknown[0] == "spec.template.spec.new") != wrote {
				t.Errorf("%s: unknown are %q", tt.why, verdict.Unknown)
			}
			if tt.fault == "" && tt.want == "" && verdict.Defaulted["spec"].(map[string]any)["dnsPolicy"] != "ClusterFirst" {
				t.Errorf("%s: no defaults in %v", tt.why, verdict.Defaulted)
			}
		})
	}
	var left corev1.PodTemplateList
	if err := c.Client.List(t.Context(), &left, client.InNamespace(namespace)); err != nil || len(left.Items) > 0 {
		t.Errorf("%d PodTemplates left behind (%v)", len(left.Items), err)
	}
}
