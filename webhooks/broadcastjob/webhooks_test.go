package broadcastjob_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/broadcastjob"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// object is a job of one container whose spec is changed by a merge patch.
func object(t *testing.T, patch string) string {
	t.Helper()
	const plain = `{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"check:1"}]}}}`
	return `{"metadata":{"name":"web"},"spec":` + plaintest.Patched(t, plain, patch) + `}`
}

func review(t *testing.T, path, version, patch string, o kinds.Options) (answer plaintest.Answer) {
	t.Helper()
	w, err := broadcastjob.New((&plaintest.Server{}).Client(), o)
	if err != nil {
		t.Fatal(err)
	}
	return w[path](t.Context(), plaintest.Request(plaintest.Kind("BroadcastJob"), version, object(t, patch), ""))
}

// Defaults are added, and nothing else is changed.
func TestMutate(t *testing.T) {
	const (
		completion = `{"op":"add","path":"/spec/completionPolicy","value":{"type":"Always"}}`
		rest       = `,{"op":"add","path":"/spec/failurePolicy","value":{"type":"FailFast"}}` +
			`,{"op":"add","path":"/spec/parallelism","value":2147483647}`
		pod = `,{"op":"add","path":"/spec/template/spec/containers/0/imagePullPolicy","value":"Always"}` +
			`,{"op":"add","path":"/spec/template/spec/dnsPolicy","value":"ClusterFirst"}`
	)
	plain := kinds.Options{TemplateNoDefaults: true}
	for name, c := range map[string]struct {
		why, patch string
		options    kinds.Options
		want       string
	}{
		"nothing is set": {why: "all defaults", want: completion + rest + pod},
		"no restart policy": {
			why:   "pods that end cannot have the default of the API server",
			patch: `{"template":{"spec":{"restartPolicy":null}}}`, options: plain,
			want: completion + rest + `,{"op":"add","path":"/spec/template/spec/restartPolicy","value":"OnFailure"}`,
		},
		"everything is set": {
			why: "nothing is left to add",
			patch: `{"parallelism":"10%","completionPolicy":{"type":"Never"},"failurePolicy":{"type":"Pause"},
				"template":{"spec":{"dnsPolicy":"Default","containers":[{"name":"main","imagePullPolicy":"Never"}]}}}`,
		},
		"half of it": {
			why: "what is set stays", patch: `{"completionPolicy":{"activeDeadlineSeconds":5}}`, options: plain,
			want: `{"op":"add","path":"/spec/completionPolicy/type","value":"Always"}` + rest,
		},
	} {
		for _, version := range plaintest.Versions() {
			t.Run(name+"/"+version, func(t *testing.T) {
				plaintest.Patches(t, c.why, c.want, review(t, broadcastjob.MutatePath, version, c.patch, c.options))
			})
		}
	}
}

// The rules have tests of their own.
func TestValidate(t *testing.T) {
	const patch = `{"failurePolicy":{"type":"Retry"},"parallelism":-1,"template":{"spec":{"restartPolicy":"Always"}}}`
	want := plaintest.Want{
		Code: 422, Paths: "spec.parallelism spec.failurePolicy.type spec.template.spec.restartPolicy",
	}
	for _, version := range plaintest.Versions() {
		plaintest.Answers(t, version, plaintest.Want{}, review(t, broadcastjob.ValidatePath, version, "", kinds.Options{}))
		plaintest.Answers(t, version, want, review(t, broadcastjob.ValidatePath, version, patch, kinds.Options{}))
	}
}
