package daemonset_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/daemonset"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// object is a set of one container whose spec is changed by a merge patch.
func object(t *testing.T, patch string) string {
	t.Helper()
	const plain = `{"selector":{"matchLabels":{"app":"agent"}},"template":{"metadata":{"labels":{"app":"agent"}},
		"spec":{"containers":[{"name":"main","image":"agent:1"}]}}}`
	return `{"metadata":{"name":"web"},"spec":` + plaintest.Patched(t, plain, patch) + `}`
}

func review(t *testing.T, path, version, patch, stored string) plaintest.Answer {
	t.Helper()
	w, err := daemonset.New((&plaintest.Server{}).Client(), kinds.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if stored != "" {
		stored = object(t, stored)
	}
	return w[path](t.Context(), plaintest.Request(plaintest.Kind("DaemonSet"), version, object(t, patch), stored))
}

// Defaults are added, and the template stays as it was written.
func TestMutate(t *testing.T) {
	const beside = `{"op":"add","path":"/spec/burstReplicas","value":250},` +
		`{"op":"add","path":"/spec/revisionHistoryLimit","value":10}`
	for name, c := range map[string]struct{ why, version, patch, want string }{
		"nothing is set": {
			why: "all defaults", version: "v1beta1", want: beside + `,{"op":"add","path":"/spec/updateStrategy","value":` +
				`{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1,"rollingUpdateType":"Standard"},"type":"RollingUpdate"}}`,
		},
		"surge": {
			why: "a bound that stands alone leaves the other absent", version: "v1beta1", want: beside,
			patch: `{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"rollingUpdateType":"Standard","maxSurge":1}}}`,
		},
		"surging": {
			why: "v1alpha1 gives the type a surge", version: "v1alpha1",
			patch: `{"updateStrategy":{"rollingUpdate":{"rollingUpdateType":"Surging"}}}`,
			want: beside + `,{"op":"add","path":"/spec/updateStrategy/rollingUpdate/maxSurge","value":1}` +
				`,{"op":"add","path":"/spec/updateStrategy/rollingUpdate/maxUnavailable","value":0}` +
				`,{"op":"add","path":"/spec/updateStrategy/type","value":"RollingUpdate"}`,
		},
		"on delete": {
			why: "no block of rolling updates", version: "v1alpha1", patch: `{"updateStrategy":{"type":"OnDelete"}}`,
			want: beside,
		},
		"everything": {
			why: "nothing is left to add", version: "v1beta1",
			patch: `{"burstReplicas":"10%","revisionHistoryLimit":0,"updateStrategy":{"type":"OnDelete"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plaintest.Patches(t, c.why, c.want, review(t, daemonset.MutatePath, c.version, c.patch, ""))
		})
	}
}

// The rules have tests of their own.
func TestValidate(t *testing.T) {
	worse := `{"minReadySeconds":-1,"burstReplicas":0,"lifecycle":{"inPlaceUpdate":{}},
		"updateStrategy":{"rollingUpdate":{"rollingUpdateType":"Surging","maxUnavailable":1,"maxSurge":1}}}`
	other := `{"selector":{"matchLabels":{"app":"other"}},"template":{"metadata":{"labels":{"app":"other"}}}}`
	plaintest.Answers(t, "valid", plaintest.Want{}, review(t, daemonset.ValidatePath, "v1beta1", "", ""))
	plaintest.Answers(t, "all faults are reported at once", plaintest.Want{
		Code: 422, Paths: "spec.minReadySeconds spec.lifecycle.inPlaceUpdate spec.burstReplicas " +
			"spec.updateStrategy.rollingUpdate.rollingUpdateType spec.updateStrategy.rollingUpdate.maxSurge",
	}, review(t, daemonset.ValidatePath, "v1beta1", worse, ""))
	plaintest.Answers(t, "the selector cannot change", plaintest.Want{Code: 422, Paths: "spec"},
		review(t, daemonset.ValidatePath, "v1beta1", other, "{}"))
}
