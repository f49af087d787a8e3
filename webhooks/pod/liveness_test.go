package pod_test

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// A pod of a controller of apps.kruise.io that asks for it loses its liveness probes, and its creator is warned. Others
// keep theirs.
func TestLiveness(t *testing.T) {
	const probed = `{metadata: {name: p, annotations: {apps.kruise.io/using-enhanced-liveness: "VALUE"},
  ownerReferences: [{apiVersion: GROUP/v1beta1, kind: X, name: x, uid: u, controller: true}]},
 spec: {containers: [{name: main, image: m, livenessProbe: {tcpSocket: {port: 80}}}]}}`
	cases := map[string]struct {
		why, value, group string
		on, want          bool
	}{
		"asked":       {"the probe moves into the annotation", "true", "apps.kruise.io", true, true},
		"off":         {"without the gate it stays", "true", "apps.kruise.io", false, false},
		"other value": {"only true asks for it", "false", "apps.kruise.io", true, false},
		"other owner": {"pods of other controllers keep it", "true", "apps", true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := pod.New([]pod.Step{pod.Liveness(c.on)}, pod.Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			req := request(t, "u", strings.NewReplacer("VALUE", c.value, "GROUP", c.group).Replace(probed))
			answer := w.Review(t.Context(), req)
			got := decode(t, patched(t, req, answer))
			const context = `[{"name":"main","livenessProbe":{"tcpSocket":{"port":80}}}]`
			if moved := got.Spec.Containers[0].LivenessProbe == nil; moved != c.want ||
				moved != (got.Annotations[kruise.ContainerProbeContextKey] == context) {
				t.Errorf("%s: %+v %v", c.why, got.Spec.Containers[0], got.Annotations)
			}
			if warned := strings.Contains(strings.Join(answer.Warnings, "\n"),
				"livenessProbe of container main"); warned != c.want {
				t.Errorf("%s: warnings %q", c.why, answer.Warnings)
			}
		})
	}
}
