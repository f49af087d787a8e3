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
		"a distributed secret that was exported": `
kind: ResourceDistribution
spec:
  resource:
    kind: keep-0
    metadata:
      annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"kind":"Secret","data":{"p":"s3cret"}}'}
    data: {p: s3cret}
`,
		"a pod whose probes are in annotations": `
kind: Pod
metadata:
  name: keep-0
  annotations:
    apps.kruise.io/container-probe-context: >-
      [{"name":"app","livenessProbe":{"exec":{"command":["check","-p","s3cret"]}}}]
    kruise.io/podprobe: >-
      [{"containerName":"app","probe":{"httpGet":{"httpHeaders":[{"name":"Authorization","value":"s3cret"}]}}}]
`,
		"the outputs of probes of all namespaces": `
kind: NodePodProbe
metadata: {name: keep-0}
status:
  podProbeStatuses: [{name: keep-1, probeStates: [{name: keep-2, state: keep-3, message: "DB_PASSWORD=s3cret"}]}]
`,
		"a webhook": `
kind: MutatingWebhookConfiguration
webhooks: [{name: keep-0, clientConfig: {caBundle: s3cret}}]
`,
		"a revision": `
kind: ControllerRevision
metadata: {ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, controller: true}]}
data: {spec: {template: {spec: {containers: [{name: keep-0, env: [{name: keep-1, value: s3cret}]}]}}}}
`,
		"a revision of another program": `
kind: ControllerRevision
metadata: {name: keep-0, ownerReferences: [{apiVersion: example.com/v1, kind: Database, controller: true}]}
data: {key: s3cret}
`,
		"a pod with state, and outputs of its containers": `
kind: Pod
metadata:
  annotations:
    apps.kruise.io/inplace-update-state: >-
      {"revision":"keep-0","nextContainerRefMetadata":{"app":{"annotations":{"a":"s3cret"}}}}
    example.com/token: s3cret
spec: {volumes: [{name: keep-1, csi: {driver: keep-2, volumeAttributes: {share: s3cret}}}]}
status:
  conditions:
  - {type: PodScheduled, message: keep-3}
  - {type: example.com/probed, reason: keep-4, message: s3cret}
  containerStatuses: [{name: keep-5, lastState: {terminated: {reason: keep-6, message: s3cret}}}]
`,
		"a template whose values are in annotations and in paths": `
kind: UnitedDeployment
metadata: {annotations: {kruisekit.dev/conversion-data: '{"v1beta1":[{"path":"/spec/a","is":"s3cret"}]}'}}
spec:
  template:
    advancedStatefulSetTemplate:
      spec:
        template:
          metadata: {annotations: {example.com/token: s3cret}}
          spec: {containers: [{name: keep-0, livenessProbe: {httpGet: {path: '/keep-1?token=s3cret'}}}]}
  topology:
    subsets: [{name: keep-2, patch: {spec: {containers: [{name: keep-3, env: [{name: keep-4, value: s3cret}]}]}}}]
status: {conditions: [{type: keep-5, message: keep-6}]}
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
