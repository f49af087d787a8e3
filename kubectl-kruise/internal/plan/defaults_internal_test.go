package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A manifest without defaults changes what it names, and nothing else: the containers of a SidecarSet keep the defaults
// that admission has filled in, and lose what only others have written.
func TestApplyKeepsDefaults(t *testing.T) {
	live := read(t, `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: s}
spec:
  containers:
  - {name: other, image: "other:1", imagePullPolicy: Always}
  - name: side
    image: side:1
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    env: [{name: BY_HAND, value: a}]
    ports: [{containerPort: 80, protocol: TCP}]
    livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 10}
`)
	got, err := Apply(live, read(t, `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: s}
spec:
  containers:
  - {name: side, image: "side:2", ports: [{containerPort: 80}], livenessProbe: {tcpSocket: {port: 80}}}
  - {name: new, image: "new:1"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: s}
spec:
  containers:
  - name: side
    image: side:2
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    ports: [{containerPort: 80, protocol: TCP}]
    livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 10}
  - {name: new, image: "new:1"}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}
