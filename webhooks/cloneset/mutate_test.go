package cloneset_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
)

// The defaults are those of the version. Package kinds has tests of the template.
func TestMutate(t *testing.T) {
	const rest = `{"op":"add","path":"/spec/replicas","value":1},{"op":"add","path":"/spec/revisionHistoryLimit",` +
		`"value":10}`
	for name, c := range map[string]struct{ why, version, now, want string }{
		"v1beta1": {
			why: "what is left out is filled in", version: "v1beta1", want: rest +
				`,{"op":"add","path":"/spec/updateStrategy","value":` +
				`{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"20%","partition":0,"podUpdatePolicy":"ReCreate"},` +
				`"type":"RollingUpdate"}}`,
		},
		"v1alpha1": {
			why: "the same, in the words of the older version", version: "v1alpha1", want: rest +
				`,{"op":"add","path":"/spec/updateStrategy","value":{"maxSurge":0,"maxUnavailable":"20%","partition":0,` +
				`"type":"ReCreate"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, _ := review(t, nil, cloneset.MutatePath, [3]string{c.version, "", c.now})
			plaintest.Patches(t, c.why, c.want, answer)
		})
	}
}
