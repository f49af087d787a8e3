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
		"in place": {
			why: "in-place policies have a strategy", version: "v1alpha1",
			now: `{"replicas":1,"revisionHistoryLimit":0,"updateStrategy":{"type":"InPlaceOnly","partition":"5%"}}`,
			want: `{"op":"add","path":"/spec/updateStrategy/inPlaceUpdateStrategy","value":{}},` +
				`{"op":"add","path":"/spec/updateStrategy/maxSurge","value":0},` +
				`{"op":"add","path":"/spec/updateStrategy/maxUnavailable","value":"20%"}`,
		},
		"OnDelete": {
			why: "no block is made for it", version: "v1beta1",
			now: `{"replicas":0,"revisionHistoryLimit":0,"updateStrategy":{"type":"OnDelete"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, _ := review(t, nil, cloneset.MutatePath, [3]string{c.version, "", c.now})
			plaintest.Patches(t, c.why, c.want, answer)
		})
	}
}
