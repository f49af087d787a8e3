package kinds_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// defaulted is a patch to a set with all defaults, and a pod spec that has those that every one has.
func defaulted(pod string) string {
	return `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},
		"template":{"spec":{"dnsPolicy":"x","restartPolicy":"Always",
		"schedulerName":"x","securityContext":{},"terminationGracePeriodSeconds":1,` + pod[1:] + `}}`
}

// TestMutate compares patches, word by word.
func TestMutate(t *testing.T) {
	const rest = `{"op":"add","path":"/spec/replicas","value":1},{"op":"add","path":"/spec/revisionHistoryLimit",` +
		`"value":10}`
	const template = `{"op":"add","path":"/spec/template/spec/containers/0/imagePullPolicy","value":"Always"},` +
		`{"op":"add","path":"/spec/template/spec/dnsPolicy","value":"ClusterFirst"}`
	cases := map[string]struct {
		why, version, stored, now string
		options                   kinds.Options
		want                      string
		calls                     int
	}{
		"v1beta1": {
			why: "what is left out is filled in", version: "v1beta1",
			want: rest + `,{"op":"add","path":"/spec/updateStrategy","value":{"rollingUpdate":{"maxSurge":0,` +
				`"maxUnavailable":"20%","partition":0,"podUpdatePolicy":"ReCreate"},"type":"RollingUpdate"}},` + template,
			calls: 1,
		},
		"v1alpha1": {
			why: "the same, in the words of the older version", version: "v1alpha1",
			want: rest + `,{"op":"add","path":"/spec/updateStrategy","value":{"maxSurge":0,"maxUnavailable":"20%",` +
				`"partition":0,"type":"ReCreate"}},` + template,
			calls: 1,
		},
		"empty values": {
			why: "they are as good as none", version: "v1beta1",
			now: `{"replicas":0,"revisionHistoryLimit":0,"updateStrategy":{"type":"",` +
				`"rollingUpdate":{"podUpdatePolicy":"","partition":1,"maxSurge":1,"maxUnavailable":1}}}`,
			options: kinds.Options{TemplateNoDefaults: true},
			want: `{"op":"replace","path":"/spec/updateStrategy/rollingUpdate/podUpdatePolicy","value":"ReCreate"},` +
				`{"op":"replace","path":"/spec/updateStrategy/type","value":"RollingUpdate"}`,
		},
		"update beside the template": {
			why: "templates are defaulted when they change", version: "v1alpha1",
			stored: `{"updateStrategy":{"type":"OnDelete","partition":1,"maxUnavailable":1,"maxSurge":1},"replicas":1}`,
			now:    `{"updateStrategy":{"type":"OnDelete","partition":1,"maxUnavailable":1,"maxSurge":1},"replicas":2}`,
			want:   `{"op":"add","path":"/spec/revisionHistoryLimit","value":10}`,
		},
		"update of claims": {
			why: "claims alone are left as they are", version: "v1beta1", stored: `{}`,
			now: `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},` +
				`"volumeClaimTemplates":[{"metadata":{"name":"a"}}]}`,
		},
		"update of both": {
			why: "with the template, claims are defaulted", version: "v1beta1", stored: `{}`,
			now: `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},` +
				`"volumeClaimTemplates":[{"metadata":{"name":"a"}}],"template":{"spec":{"priority":1}}}`,
			want:  template + `,{"op":"add","path":"/spec/volumeClaimTemplates/0/status","value":{"phase":"Pending"}}`,
			calls: 1,
		},
		"host ports from now on": {
			why: "the stored template has gone without them, and the network was its own", version: "v1beta1",
			stored:  defaulted(`{"containers":[{"imagePullPolicy":"Never","ports":[{"containerPort":2}]}]}`),
			now:     defaulted(`{"hostNetwork":true,"containers":[{"imagePullPolicy":"Never","ports":[{"containerPort":2}]}]}`),
			options: kinds.Options{HostNetworkHostPorts: true},
			want:    `{"op":"add","path":"/spec/template/spec/containers/0/ports/0/hostPort","value":2}`, calls: 1,
		},
		"host ports": {
			why: "pods in the host's network listen on its ports", version: "v1beta1",
			now: `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},
				"template":{"spec":{"dnsPolicy":"None","hostNetwork":true,
				"initContainers":[{"ports":[{"containerPort":1}]}],"containers":[{"imagePullPolicy":"Never",
				"ports":[{"containerPort":2},{"containerPort":3,"hostPort":4}]}]}}}`,
			options: kinds.Options{HostNetworkHostPorts: true},
			want: `{"op":"add","path":"/spec/template/spec/containers/0/ports/0/hostPort","value":2},{"op":"add",` +
				`"path":"/spec/template/spec/initContainers/0/ports/0/hostPort","value":1}`,
			calls: 1,
		},
		"no host ports": {
			why: "it is an option", version: "v1beta1",
			now: `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},` +
				`"template":{"spec":{"dnsPolicy":"None","hostNetwork":true,"containers":[{"imagePullPolicy":"Never",` +
				`"ports":[{"containerPort":2}]}]}}}`,
			calls: 1,
		},
		"no template": {
			why: "the schema refuses it", version: "v1beta1",
			now: `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"template":null}`,
		},
		"odd claims": {
			why: "the validation refuses them", version: "v1beta1",
			now: `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"template":null,` +
				`"volumeClaimTemplates":[null]}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := &plaintest.Server{}
			w := serve(t, server.Client(), sets(), c.options)
			plaintest.Patches(t, c.why, c.want, w[mutate](t.Context(), change(t, c.version, c.stored, c.now)))
			if len(server.Asked) != c.calls {
				t.Errorf("%s: asked about %q", c.why, server.Asked)
			}
		})
	}
}

// A misspelt field of a template is let in with a warning of the webhook that validates.
func TestUnknownFields(t *testing.T) {
	const typo = `{"template":{"spec":{"dnsPolicy":"ClusterFirst",
		"containers":[{"name":"main","image":"app:1","imagePullPolicy":"Always","comand":["a"]}]}}}`
	server := &plaintest.Server{}
	server.Rejects = func(client.Object) error {
		if len(server.Asked)%2 == 0 {
			return nil
		}
		return apierrors.NewBadRequest(`PodTemplate in version "v1" cannot be handled as a PodTemplate: ` +
			`strict decoding error: unknown field "template.spec.containers[0].comand"`)
	}
	w := serve(t, server.Client(), sets(), kinds.Options{})
	for i, c := range []struct {
		path         string
		warns, calls int
	}{{validate, 1, 2}, {mutate, 0, 1}} {
		server.Asked = nil
		answer := w[c.path](t.Context(), change(t, "v1beta1", "", typo))
		plaintest.Answers(t, c.path, plaintest.Want{Warnings: c.warns}, answer)
		if len(server.Asked) != c.calls {
			t.Errorf("request %d: %d calls", i, len(server.Asked))
		}
		for _, got := range answer.Warnings {
			if want := `unknown field "spec.template.spec.containers[0].comand"`; got != want {
				t.Errorf("request %d: %q, want %q", i, got, want)
			}
		}
	}
}
