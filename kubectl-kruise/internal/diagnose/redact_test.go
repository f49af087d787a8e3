package diagnose_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/diagnose"
)

// Values that are called s3cret go, and values that are called keep stay.
func TestRedact(t *testing.T) {
	for name, text := range map[string]string{
		"a workload": `
kind: CloneSet
metadata:
  name: keep-0
  annotations: {kubectl.kubernetes.io/last-applied-configuration: s3cret}
  managedFields: [{manager: s3cret}]
spec:
  template:
    spec:
      containers:
      - name: keep-1
        image: keep-2
        command: [s3cret]
        args: [s3cret]
        env:
        - {name: keep-3, value: s3cret}
        - {name: keep-4, valueFrom: {secretKeyRef: {name: keep-5, key: keep-6}}}
        readinessProbe: {httpGet: {path: keep-7, httpHeaders: [{name: Authorization, value: s3cret}]}}
      volumes: [{name: v, secret: {secretName: keep-8}}]
`,
		"a distributed secret": `
kind: ResourceDistribution
spec: {resource: {kind: keep-0, stringData: {password: s3cret}, data: {p: s3cret}}}
`,
		"a webhook": `
kind: MutatingWebhookConfiguration
webhooks: [{name: keep-0, clientConfig: {caBundle: s3cret}}]
`,
		"a revision": `
kind: ControllerRevision
data: {spec: {template: {spec: {containers: [{name: keep-0, env: [{name: keep-1, value: s3cret}]}]}}}}
`,
		"a definition": `
kind: CustomResourceDefinition
spec: {versions: [{name: keep-0, schema: {openAPIV3Schema: {properties: {command: {type: string}}}}}]}
`,
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatal(err)
			}
			after, err := yaml.Marshal(diagnose.Redact(o).Object)
			if err != nil {
				t.Fatal(err)
			}
			kept := strings.Count(string(after), "keep-")
			if strings.Contains(string(after), "s3cret") || kept != strings.Count(text, "keep-") {
				t.Errorf("%s", after)
			}
		})
	}
}
