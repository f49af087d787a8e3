package deletion_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/webhooks/deletion"
)

// series are the values of all counters, by name and labels.
func series(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue()
		}
	}
	return all
}

// A refusal is counted and recorded once, with the names that the reference gives it.
func TestRecords(t *testing.T) {
	cases := map[string]struct {
		why     string
		in      review
		metrics map[string]float64
		line    string
	}{
		"namespace": {
			why: "it is an object of the cluster",
			in:  review{version: "v1", kind: "Namespace", label: "Always"},
			metrics: map[string]float64{
				"namespace_deletion_protection{name=x,username=tenant}":                          1,
				"kruisekit_deletion_protection_refused_total{code=Always,group=,kind=Namespace}": 1,
			},
			line: `{"Event":"DeletionProtection","Kind":"Namespace","Namespace":"","Name":"x","UserAgent":"tenant"}`,
		},
		"definition": {
			why: "it is an object of the cluster",
			in: review{
				group: "apiextensions.k8s.io", version: "v1beta1", kind: "CustomResourceDefinition", label: "Always",
			},
			metrics: map[string]float64{
				"crd_deletion_protection{name=x,username=tenant}": 1,
				"kruisekit_deletion_protection_refused_total" +
					"{code=Always,group=apiextensions.k8s.io,kind=CustomResourceDefinition}": 1,
			},
			line: `{"Event":"DeletionProtection","Kind":"CustomResourceDefinition","Namespace":"","Name":"x","UserAgent":"tenant"}`,
		},
		"workload": {
			why: "the label has kind, namespace and name",
			in: review{
				group:   "apps",
				version: "v1",
				kind:    "Deployment",
				stored: `{"metadata":{"name":"web","namespace":"shop","labels":{"` + key +
					`":"Cascading"}},"spec":{"replicas":2}}`,
			},
			metrics: map[string]float64{
				"workload_deletion_protection{kind_namespace_name=Deployment_shop_web,username=tenant}":         1,
				"kruisekit_deletion_protection_refused_total{code=ActiveDependents,group=apps,kind=Deployment}": 1,
			},
			line: `{"Event":"DeletionProtection","Kind":"Deployment","Namespace":"shop","Name":"web","UserAgent":"tenant"}`,
		},
		"service": {
			"the metrics of the reference have none",
			review{version: "v1", kind: "Service", label: "Always"},
			map[string]float64{"kruisekit_deletion_protection_refused_total{code=Always,group=,kind=Service}": 1},
			`{"Event":"DeletionProtection","Kind":"Service","Namespace":"","Name":"x","UserAgent":"tenant"}`,
		},
		"dry run": {
			why: "nothing would have been deleted",
			in: review{
				version: "v1", kind: "Namespace", label: "Always", change: func(r *admission.Request) { r.DryRun = ptr.To(true) },
			},
			metrics: map[string]float64{},
		},
		"no label": {
			why:     "nothing was refused",
			in:      review{version: "v1", kind: "Namespace", label: "never"},
			metrics: map[string]float64{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			registry, lines := prometheus.NewRegistry(), ""
			g := newGuard(t, newWorld("Always"), deletion.Options{Registerer: registry, Audit: func(r deletion.Record) {
				line, err := json.Marshal(r)
				if err != nil {
					t.Error(err)
				}
				lines += string(line)
			}})
			g.Handle(t.Context(), c.in.request(t))
			if diff := cmp.Diff(c.metrics, series(t, registry)); diff != "" {
				t.Errorf("%s: metrics (-want +got):\n%s", c.why, diff)
			}
			if diff := cmp.Diff(c.line, lines); diff != "" {
				t.Errorf("%s: records (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// A client that uses many names, or long ones, makes neither metrics nor records grow without end.
func TestRecordsAreBounded(t *testing.T) {
	registry, longest := prometheus.NewRegistry(), 0
	g := newGuard(t, newWorld("Always"), deletion.Options{Registerer: registry, Audit: func(r deletion.Record) {
		longest = max(longest, len(r.UserAgent), len(r.Name))
	}})
	for i := range 1050 {
		name := fmt.Sprint(i, strings.Repeat("é", 10000))
		r := review{
			version: "v1", kind: "Namespace", stored: `{"metadata":{"name":"` + name + `","labels":{"` + key + `":"Always"}}}`,
		}
		r.change = func(req *admission.Request) { req.UserInfo.Username = name }
		g.Handle(t.Context(), r.request(t))
	}
	all := series(t, registry)
	if len(all) != 1002 || all["namespace_deletion_protection{name=other,username=other}"] != 50 {
		t.Errorf("%d series, of others %v", len(all), all["namespace_deletion_protection{name=other,username=other}"])
	}
	if longest > 300 {
		t.Errorf("a record has a name of %d bytes", longest)
	}
}
