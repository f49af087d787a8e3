package cloneset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/webhooks/cloneset"
)

// defaulted is a patch to a set with all defaults, and a pod spec that has those that every one has.
func defaulted(pod string) string {
	return `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"template":{"spec":{"dnsPolicy":"x","restartPolicy":"Always",
		"schedulerName":"x","securityContext":{},"terminationGracePeriodSeconds":1,` + pod[1:] + `}}`
}

// TestMutate compares patches, word by word.
func TestMutate(t *testing.T) {
	const rest = `{"op":"add","path":"/spec/replicas","value":1},{"op":"add","path":"/spec/revisionHistoryLimit","value":10}`
	const template = `{"op":"add","path":"/spec/template/spec/containers/0/imagePullPolicy","value":"Always"},{"op":"add","path":"/spec/template/spec/dnsPolicy","value":"ClusterFirst"}`
	cases := map[string]struct {
		why, version, stored, now string
		options                   cloneset.Options
		want                      string
		calls                     int
	}{
		"v1beta1": {
			"what is left out is filled in", "v1beta1", "", "",
			cloneset.Options{},
			`[` + rest + `,{"op":"add","path":"/spec/updateStrategy","value":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"20%","partition":0,"podUpdatePolicy":"ReCreate"},"type":"RollingUpdate"}},` + template + `]`, 1,
		},
		"v1alpha1": {
			"the same, in the words of the older version", "v1alpha1", "", "",
			cloneset.Options{},
			`[` + rest + `,{"op":"add","path":"/spec/updateStrategy","value":{"maxSurge":0,"maxUnavailable":"20%","partition":0,"type":"ReCreate"}},` + template + `]`, 1,
		},
		"in place": {
			"in-place policies have a strategy", "v1alpha1", "", `{"replicas":1,"revisionHistoryLimit":0,"updateStrategy":{"type":"InPlaceOnly","partition":"5%"}}`,
			cloneset.Options{},
			`[{"op":"add","path":"/spec/updateStrategy/inPlaceUpdateStrategy","value":{}},{"op":"add","path":"/spec/updateStrategy/maxSurge","value":0},{"op":"add","path":"/spec/updateStrategy/maxUnavailable","value":"20%"},` + template + `]`, 1,
		},
		"OnDelete": {
			"no block is made for it", "v1beta1", "", `{"replicas":0,"revisionHistoryLimit":0,"updateStrategy":{"type":"OnDelete"}}`, cloneset.Options{TemplateNoDefaults: true}, ``, 0,
		},
		"empty values": {
			"they are as good as none", "v1beta1", "", `{"replicas":0,"revisionHistoryLimit":0,"updateStrategy":{"type":"","rollingUpdate":{"podUpdatePolicy":"","partition":1,"maxSurge":1,"maxUnavailable":1}}}`,
			cloneset.Options{TemplateNoDefaults: true},
			`[{"op":"replace","path":"/spec/updateStrategy/rollingUpdate/podUpdatePolicy","value":"ReCreate"},{"op":"replace","path":"/spec/updateStrategy/type","value":"RollingUpdate"}]`, 0,
		},
		"update beside the template": {
			"templates are defaulted when they change", "v1alpha1", `{"updateStrategy":{"type":"OnDelete","partition":1,"maxUnavailable":1,"maxSurge":1},"replicas":1}`,
			`{"updateStrategy":{"type":"OnDelete","partition":1,"maxUnavailable":1,"maxSurge":1},"replicas":2}`,
			cloneset.Options{},
			`[{"op":"add","path":"/spec/revisionHistoryLimit","value":10}]`, 0,
		},
		"update of claims": {
			"claims alone are left as they are", "v1beta1", `{}`, `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"volumeClaimTemplates":[{"metadata":{"name":"a"}}]}`, cloneset.Options{}, ``, 0,
		},
		"update of both": {
			"with the template, claims are defaulted", "v1beta1", `{}`,
			`{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"volumeClaimTemplates":[{"metadata":{"name":"a"}}],"template":{"spec":{"priority":1}}}`,
			cloneset.Options{},
			`[` + template + `,{"op":"add","path":"/spec/volumeClaimTemplates/0/status","value":{"phase":"Pending"}}]`, 1,
		},
		"host ports from now on": {
			"the stored template has gone without them, and the network was its own", "v1beta1", defaulted(`{"containers":[{"imagePullPolicy":"Never","ports":[{"containerPort":2}]}]}`),
			defaulted(`{"hostNetwork":true,"containers":[{"imagePullPolicy":"Never","ports":[{"containerPort":2}]}]}`),
			cloneset.Options{HostNetworkHostPorts: true},
			`[{"op":"add","path":"/spec/template/spec/containers/0/ports/0/hostPort","value":2}]`, 1,
		},
		"host ports": {
			"pods in the host's network listen on its ports", "v1beta1", "",
			`{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"template":{"spec":{"dnsPolicy":"None","hostNetwork":true,
				"initContainers":[{"ports":[{"containerPort":1}]}],"containers":[{"imagePullPolicy":"Never","ports":[{"containerPort":2},{"containerPort":3,"hostPort":4}]}]}}}`,
			cloneset.Options{HostNetworkHostPorts: true},
			`[{"op":"add","path":"/spec/template/spec/containers/0/ports/0/hostPort","value":2},{"op":"add","path":"/spec/template/spec/initContainers/0/ports/0/hostPort","value":1}]`, 1,
		},
		"no host ports": {
			"it is an option", "v1beta1", "",
			`{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"template":{"spec":{"dnsPolicy":"None","hostNetwork":true,"containers":[{"imagePullPolicy":"Never","ports":[{"containerPort":2}]}]}}}`,
			cloneset.Options{},
			``, 1,
		},
		"no template": {"the schema refuses it", "v1beta1", "", `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"template":null}`, cloneset.Options{}, ``, 0},
		"odd claims":  {"the validation refuses them", "v1beta1", "", `{"replicas":1,"revisionHistoryLimit":1,"updateStrategy":{"type":"OnDelete"},"template":null,"volumeClaimTemplates":[null]}`, cloneset.Options{}, ``, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, made := newWebhooks(t, c.options, nil)
			answer := w.Mutate(t.Context(), newRequest(t, c.version, c.stored, c.now))
			if !answer.Allowed {
				t.Fatal(answer.Result)
			}
			if diff := cmp.Diff(c.want, string(answer.Patch)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if (answer.PatchType == nil) != (c.want == "") || *made != c.calls {
				t.Errorf("patch type %v, %d calls", answer.PatchType, *made)
			}
		})
	}
}

// TestTickets: what one webhook has asked, the other does not ask again, once.
func TestTickets(t *testing.T) {
	w, made := newWebhooks(t, cloneset.Options{}, nil)
	const complete = `{"template":{"spec":{"dnsPolicy":"ClusterFirst","containers":[{"name":"main","image":"app:1","imagePullPolicy":"Always"}]}}}`
	for i, want := range []int{1, 1, 2} {
		answer := w.Validate(t.Context(), newRequest(t, "v1beta1", "", complete))
		if i == 0 {
			*made = 0
			w.Mutate(t.Context(), newRequest(t, "v1beta1", "", ""))
			continue
		}
		if !answer.Allowed || *made != want {
			t.Errorf("validation %d: %d calls, want %d", i, *made, want)
		}
	}
	// Those that nobody redeems make place for others.
	for range 300 {
		w.Mutate(t.Context(), newRequest(t, "v1beta1", "", ""))
	}
	*made = 0
	w.Validate(t.Context(), newRequest(t, "v1beta1", "", complete))
	if *made != 0 {
		t.Error("the latest ticket is gone")
	}
}

// FuzzHandlers sends anything; a handler answers, with a code, and does not panic.
func FuzzHandlers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"spec":null}`, `{"spec":{"template":{"spec":{"containers":[null,7,{"ports":[null,{"containerPort":1}]}],"volumes":7,"hostNetwork":true}}}}`,
		`{"spec":{"updateStrategy":{"type":"InPlaceOnly","partition":"","maxSurge":"-%","rollingUpdate":{"maxUnavailable":"1e9%"}},"volumeClaimTemplates":[null,{"metadata":7}]}}`,
		`{"metadata":{"annotations":{"kruisekit.dev/conversion-data":"{\"v1beta1\":[{\"path\":\"/spec\",\"is\":7}]}"}},"spec":{"scaleStrategy":{"podsToDelete":["","a"]}}}`,
		`{"spec":{"selector":{"matchExpressions":[{"operator":"In"}]},"replicas":-2147483648}}`,
	} {
		f.Add(seed, `{}`)
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, now, stored string) {
		w, _ := newWebhooks(t, cloneset.Options{HostNetworkHostPorts: true}, nil)
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete} {
				request := rawRequest(version, operation, now, stored)
				for _, handle := range []admission.HandlerFunc{w.Mutate, w.Validate} {
					answer := handle(t.Context(), request)
					if answer.Result == nil || answer.Result.Code == 0 || answer.Allowed != (answer.Result.Code == 200) || answer.Result.Code >= 500 {
						t.Fatalf("%s %s: %+v", operation, version, answer)
					}
				}
			}
		}
	})
}
