package sidecarset_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// A value that cannot be read is reported with its path, also where its decoder does not know that.
func TestUnreadValues(t *testing.T) {
	cases := map[string]struct {
		why, spec string
		code      int32
		path      string
	}{
		"a quantity": {
			why:  "it is none",
			spec: `{"containers":[{"name":"a"},{"name":"b","resources":{"limits":{"cpu":"abc"}}}]}`,
			code: 422,
			path: "spec.containers[1].resources",
		},
		"one of a volume": {
			why:  "it is none",
			spec: `{"volumes":[{"name":"a","emptyDir":{"sizeLimit":"1Z"}}]}`,
			code: 422,
			path: "spec.volumes[0].emptyDir",
		},
		"one of a init": {
			why:  "it is none",
			spec: `{"initContainers":[{"name":"a","resources":{"requests":{"memory":"1 Gi"}}}]}`,
			code: 422,
			path: "spec.initContainers[0].resources",
		},
		"a number that is not": {
			why:  "the decoder knows",
			spec: `{"containers":[{"name":"a","ports":[{"containerPort":"x"}]}]}`,
			code: 400,
			path: "spec.containers.ports.containerPort",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				answer := newWebhooks(t, &plainServer{}, sidecarset.Options{}).Validate(t.Context(),
					newRequest(version, object(t, version, c.spec), ""))
				if answer.Allowed || answer.Result.Code != c.code || answer.Result.Details == nil ||
					len(answer.Result.Details.Causes) != 1 || answer.Result.Details.Causes[0].Field != c.path {
					t.Errorf("%s: want %d at %s, got %+v", c.why, c.code, c.path, answer.Result)
				}
			}
		})
	}
}
