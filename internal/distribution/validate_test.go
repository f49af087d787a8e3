package distribution_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

func parsed(t testing.TB, spec string) *v1beta1.ResourceDistribution {
	t.Helper()
	d := &v1beta1.ResourceDistribution{}
	if err := json.Unmarshal([]byte(spec), &d.Spec); err != nil {
		t.Fatal(err)
	}
	return d
}

func faults(list field.ErrorList) (all []string) {
	for _, f := range list {
		all = append(all, f.Field+": "+string(f.Type))
	}
	return all
}

// What is rejected, with which paths: the cases of the reference, and those in which each copy would be rejected.
func TestValidate(t *testing.T) {
	spec := func(resource string) string { return `{"resource":` + resource + `,"targets":{}}` }
	secret := func(rest string) string {
		return spec(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}` + rest + `}`)
	}
	meta := func(meta string) string {
		return spec(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + meta + `}}`)
	}
	targets := func(targets string) string { return `{"resource":` + plain + `,"targets":{` + targets + `}}` }
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"good": {targets(``), nil},
		"all kinds of targets": {
			targets(`"allNamespaces":true,"includedNamespaces":{"list":[{"name":"a"},{"name":"kube-system"}]},"excludedNamespaces":{"list":[{"name":"b"}]},"namespaceSelector":{"matchLabels":{"a":"b"}}`),
			nil,
		},
		"a namespace is ignored": {meta(`"name":"a","namespace":"elsewhere","creationTimestamp":null`), nil},
		"no resource":            {`{"targets":{}}`, []string{"spec.resource: FieldValueInvalid"}},
		"null":                   {spec(`null`), []string{"spec.resource: FieldValueInvalid"}},
		"no kind":                {spec(`{}`), []string{"spec.resource: InternalError"}},
		"a number":               {spec(`7`), []string{"spec.resource: FieldValueInvalid"}},
		"a Deployment": {
			spec(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`),
			[]string{"spec.resource: FieldValueInvalid"},
		},
		"another group": {
			spec(`{"apiVersion":"example.com/v1","kind":"Secret","metadata":{"name":"a"}}`),
			[]string{"spec.resource: FieldValueInvalid"},
		},
		"no base64":  {secret(`,"data":{"a":"?"}`), []string{"spec.resource: FieldValueInvalid"}},
		"no name":    {meta(``), []string{"spec.resource.metadata.name: FieldValueRequired"}},
		"a bad name": {meta(`"name":"A_b"`), []string{"spec.resource.metadata.name: FieldValueInvalid"}},
		"bad metadata": {
			meta(`"name":"a","labels":{"a b":"c"},"annotations":{"a b":"c"},"finalizers":["a b"],` +
				`"ownerReferences":[{"controller":true,"apiVersion":"v1","kind":"A","name":"x","uid":"1"}]`),
			[]string{
				"spec.resource.metadata.labels: FieldValueInvalid", "spec.resource.metadata.annotations: FieldValueInvalid",
				"spec.resource.metadata.finalizers: FieldValueInvalid",
				"spec.resource.metadata.ownerReferences: FieldValueInvalid",
			},
		},
		"bad keys": {
			secret(`,"stringData":{"a/b":"","..":""}`),
			[]string{"spec.resource.data[..]: FieldValueInvalid", "spec.resource.data[a/b]: FieldValueInvalid"},
		},
		"a key twice": {
			spec(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"},"binaryData":{"k":"eA==","a b":""}}`),
			[]string{"spec.resource.binaryData[a b]: FieldValueInvalid", "spec.resource.data[k]: FieldValueInvalid"},
		},
		"too much": {
			secret(`,"stringData":{"a":"` + strings.Repeat("x", 1<<20+1) + `"}`),
			[]string{"spec.resource.data: FieldValueTooLong"},
		},
		"as much as fits": {secret(`,"stringData":{"a":"` + strings.Repeat("x", 1<<20) + `"}`), nil},
		"a token": {
			secret(`,"type":"kubernetes.io/service-account-token"`), []string{"spec.resource.type: FieldValueInvalid"},
		},
		"any type": {secret(`,"type":"example.com/any"`), nil},
		"no config": {
			secret(`,"type":"kubernetes.io/dockerconfigjson"`),
			[]string{"spec.resource.data[.dockerconfigjson]: FieldValueRequired"},
		},
		"config": {secret(`,"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"{}"}`), nil},
		"a list as config": {
			secret(`,"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"[]"}`),
			[]string{"spec.resource.data[.dockerconfigjson]: FieldValueInvalid"},
		},
		"bad config": {
			secret(`,"type":"kubernetes.io/dockercfg","stringData":{".dockercfg":"secret"}`),
			[]string{"spec.resource.data[.dockercfg]: FieldValueInvalid"},
		},
		"half of TLS": {
			secret(`,"type":"kubernetes.io/tls","stringData":{"tls.crt":""}`),
			[]string{"spec.resource.data[tls.key]: FieldValueRequired"},
		},
		"no key of SSH": {
			secret(`,"type":"kubernetes.io/ssh-auth"`), []string{"spec.resource.data[ssh-privatekey]: FieldValueRequired"},
		},
		"nobody": {
			secret(`,"type":"kubernetes.io/basic-auth"`),
			[]string{"spec.resource.data[password]: FieldValueRequired", "spec.resource.data[username]: FieldValueRequired"},
		},
		"a user is enough": {secret(`,"type":"kubernetes.io/basic-auth","stringData":{"username":"a"}`), nil},
		"names": {
			targets(`"includedNamespaces":{"list":[{"name":"INVALID"},{}]},"excludedNamespaces":{"list":[{"name":"a.b"}]}`),
			[]string{
				"spec.targets.includedNamespaces: FieldValueInvalid", "spec.targets.includedNamespaces: FieldValueInvalid",
				"spec.targets.excludedNamespaces: FieldValueInvalid",
			},
		},
		"reserved": {
			targets(`"includedNamespaces":{"list":[{"name":"own"}]}`),
			[]string{"spec.targets.includedNamespaces: FieldValueForbidden"},
		},
		"selector": {
			targets(`"namespaceSelector":{"matchLabels":{"a b":"c"}}`),
			[]string{"spec.targets.namespaceSelector: FieldValueInvalid"},
		},
		"unknown operator": {
			targets(`"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Like"}]}`),
			[]string{"spec.targets.namespaceSelector: FieldValueInvalid"},
		},
		"exactly three": {
			targets(`"includedNamespaces":{"list":[{"name":"ns-1"},{"name":"ns-2"},{"name":"kube-system"},{"name":""}]},"excludedNamespaces":{"list":[{"name":"ns-1"}]},"namespaceSelector":{"matchLabels":{"/":"c"}}`),
			[]string{
				"spec.targets.includedNamespaces: FieldValueInvalid", "spec.targets: FieldValueInvalid",
				"spec.targets.namespaceSelector: FieldValueInvalid",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := distribution.Validate(parsed(t, c.spec), "own")
			if diff := cmp.Diff(c.want, faults(got)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			for _, f := range got {
				if text := f.Error(); strings.Contains(text, "secret\"") || len(text) > 2000 {
					t.Errorf("the text shows content: %s", text)
				}
			}
		})
	}
}

// The kind and the name stay, all else can change.
func TestValidateUpdate(t *testing.T) {
	for resource, want := range map[string][]string{
		plain: nil,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","labels":{"a":"b"}},"data":{"k":"eA=="}}`: nil,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"other"}}`: {
			"spec.resource: FieldValueInvalid",
		},
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"pull"}}`: {
			"spec.resource: FieldValueInvalid",
		},
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`: {
			"spec.resource: FieldValueInvalid", "spec.resource: FieldValueInvalid",
		},
		`{}`: nil, // that is for Validate
	} {
		now := parsed(t, fmt.Sprintf(`{"resource":%s,"targets":{"allNamespaces":true}}`, resource))
		if diff := cmp.Diff(want,
			faults(distribution.ValidateUpdate(now, parsed(t, `{"resource":`+plain+`,"targets":{}}`)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", resource, diff)
		}
	}
}
