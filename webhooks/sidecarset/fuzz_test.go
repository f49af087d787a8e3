package sidecarset_test

import (
	"encoding/json"
	"strings"
	"testing"

	// the one in the API server

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// FuzzRequests: no request makes the webhooks panic, a patch fits what was sent, and what is refused has a reason.
func FuzzRequests(f *testing.F) {
	f.Add(object(f, "v1beta1",
		`{"volumes":[null,{"name":"v"}],"initContainers":[{"restartPolicy":"Always","resourcesPolicy":{}}],"injectionStrategy":{"revision":{"revisionName":"a"}}}`),
		"", "")
	f.Add(object(f, "v1alpha1",
		`{"namespace":"?","patchPodMetadata":[{"annotations":{"k":"v"}},null],"containers":[null]}`),
		object(f, "v1beta1", `{}`),
		`{"metadata":{"name":"b"},"spec":{"selector":{"matchLabels":{"app":"x"}},"containers":[null,{"name":"agent"}]}}`)
	f.Add(`{"metadata":{"annotations":{"apps.kruise.io/sidecarset-canary":"true","apps.kruise.io/sidecarset-base":"b"}},"spec":{"updateStrategy":{"selector":{"matchExpressions":[{}]},"partition":"x"}}}`,
		`7`, "")
	f.Fuzz(func(t *testing.T, now, stored, other string) {
		server := &plainServer{}
		if json.Valid([]byte(other)) && strings.HasPrefix(other, `{"metadata":{"name":"`) {
			server.others = []string{`{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet",` + other[1:]}
		}
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			w, r := newWebhooks(t, server, sidecarset.Options{}), newRequest(version, now, stored)
			mutated, validated := w[sidecarset.MutatePath](t.Context(), r), w[sidecarset.ValidatePath](t.Context(), r)
			for _, answer := range []admission.Response{mutated, validated} {
				if !answer.Allowed && answer.Result.Message == "" {
					t.Errorf("refused without a word: %+v", answer.Result)
				}
			}
			if mutated.Patch != nil && json.Valid([]byte(now)) {
				applied(t, now, mutated)
			}
		}
	})
}
