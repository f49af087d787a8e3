package imagepull_test

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
)

// TestMutate compares patches, word by word.
func TestMutate(t *testing.T) {
	const (
		finalizer = `{"op":"add","path":"/metadata/finalizers","value":["apps.kruise.io/deletion-protection"]}`
		always    = `{"op":"add","path":"/spec/completionPolicy","value":{"type":"Always"}}`
		present   = `{"op":"add","path":"/spec/imagePullPolicy","value":"IfNotPresent"}`
		pull      = `{"op":"add","path":"/spec/pullPolicy","value":{"backoffLimit":3,"timeoutSeconds":600}}`
		created   = `{"op":"add","path":"/spec/images/nginx/tags/0/createdAt","value":"2024-05-06T07:08:09Z"}`
		full      = `{"spec":{"image":"a","imagePullPolicy":"Always","completionPolicy":{"type":"Never"},` +
			`"pullPolicy":{"timeoutSeconds":0,"backoffLimit":0}}}`
		tag = `"createdAt":"2023-01-01T00:00:00Z","pullPolicy":{"timeoutSeconds":1,"backoffLimit":1}`
	)
	cases := map[string]struct{ why, kind, version, now, stored, want string }{
		"new job": {
			"its controller gives it the finalizer", job, "v1beta1",
			`{"metadata":{},"spec":{"image":"a"}}`, "", always + "," + present + "," + pull,
		},
		"new job, v1alpha1": {
			"it gets the finalizer here", job, "v1alpha1", `{"metadata":{},"spec":{"image":"a"}}`, "",
			finalizer + "," + always + "," + present + "," + pull,
		},
		"finalizer is there": {
			"once is enough", job, "v1alpha1",
			`{"metadata":{"finalizers":["apps.kruise.io/deletion-protection"]},` + full[1:], "", "",
		},
		"another finalizer": {
			"it stays", job, "v1alpha1", `{"metadata":{"finalizers":["x"]},` + full[1:], "",
			`{"op":"add","path":"/metadata/finalizers","value":["x","apps.kruise.io/deletion-protection"]}`,
		},
		"finished job": {"it must get rid of its finalizer", job, "v1alpha1", full, full, ""},
		"complete job": {"zero is a value", job, "v1beta1", full, "", ""},
		"half a pull policy": {
			"the reference leaves it, where nothing else is missing", job, "v1beta1",
			`{"spec":{"image":"a","imagePullPolicy":"Always","completionPolicy":{"type":"Never"},` +
				`"pullPolicy":{"backoffLimit":1}}}`, full,
			`{"op":"add","path":"/spec/pullPolicy/timeoutSeconds","value":600}`,
		},
		"empty values": {
			"they are as good as none", job, "v1beta1",
			`{"spec":{"image":"a","imagePullPolicy":"","completionPolicy":{"type":""},"pullPolicy":null}}`, full,
			`{"op":"replace","path":"/spec/completionPolicy/type","value":"Always"},` +
				strings.Replace(present, "add", "replace", 1) + "," + pull,
		},
		"unknown field": {
			"it stays", job, "v1beta1",
			`{"spec":{"image":"a","completionPolicy":{"new":1},"pullPolicy":{"new":2}}}`, full,
			`{"op":"add","path":"/spec/completionPolicy/type","value":"Always"},` + present +
				`,{"op":"add","path":"/spec/pullPolicy/backoffLimit","value":3},{"op":"add",` +
				`"path":"/spec/pullPolicy/timeoutSeconds","value":600}`,
		},
		"list": {
			"its jobs get a policy of their own", list, "v1beta1", `{"spec":{"images":["a"]}}`, "",
			always + "," + pull,
		},
		"list, v1alpha1": {"it has no finalizer", list, "v1alpha1", `{"spec":{"images":["a"]}}`, "", always + "," + pull},
		"node": {
			"a tag has been asked for now", node, "v1beta1",
			`{"spec":{"images":{"nginx":{"tags":[{"tag":"1"}]}}}}`, "", created +
				`,{"op":"add","path":"/spec/images/nginx/tags/0/pullPolicy","value":{"backoffLimit":3,"timeoutSeconds":600}}`,
		},
		"node, v1alpha1": {
			"the same", node, "v1alpha1", `{"spec":{"images":{"nginx":{"tags":[{"tag":"1"}]}}}}`, "",
			created + `,{"op":"add","path":"/spec/images/nginx/tags/0/pullPolicy","value":{"backoffLimit":3,` +
				`"timeoutSeconds":600}}`,
		},
		"node without any": {"there is nothing to fill", node, "v1beta1", `{"spec":{}}`, "", ""},
		"half a tag policy": {
			"its ttl stays", node, "v1beta1",
			`{"spec":{"images":{"nginx":{"tags":[{"tag":"1","pullPolicy":{"ttlSecondsAfterFinished":5}}]}}}}`, "", created +
				`,{"op":"add","path":"/spec/images/nginx/tags/0/pullPolicy/backoffLimit","value":3},{"op":"add",` +
				`"path":"/spec/images/nginx/tags/0/pullPolicy/timeoutSeconds","value":600}`,
		},
		"sorted node": {"createdAt stays", node, "v1beta1", `{"spec":{"images":{"nginx":{"tags":[{"tag":"1",` + tag +
			`},{"tag":"2",` + tag + `}]}}}}`, "", ""},
		"unsorted node": {
			"fields that this program does not know move along", node, "v1beta1",
			`{"spec":{"images":{"a/b":{"tags":[{"tag":"2","new":1,` + tag + `},{"tag":"1"}]}}}}`, "",
			`{"op":"replace","path":"/spec/images/a~1b/tags","value":[{"tag":"1"},{"createdAt":"2023-01-01T00:00:00Z",` +
				`"new":1,"pullPolicy":{"backoffLimit":1,"timeoutSeconds":1},"tag":"2"}]},` +
				`{"op":"add","path":"/spec/images/a~1b/tags/0/createdAt","value":"2024-05-06T07:08:09Z"},{"op":"add",` +
				`"path":"/spec/images/a~1b/tags/0/pullPolicy","value":{"backoffLimit":3,"timeoutSeconds":600}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := review(t, open(), mutate, c.kind, [3]string{c.version, c.now, c.stored})
			plaintest.Patches(t, c.why, c.want, answer)
		})
	}
}

// TestValidate is about the way to an answer; the rules have tests of their own.
func TestValidate(t *testing.T) {
	const (
		good    = `{"spec":{"image":"a","completionPolicy":{"type":"Always"}}}`
		secret  = `{"spec":{"image":"a","completionPolicy":{"type":"Always"},"pullSecrets":["s"]}}`
		odd     = `{"spec":{"image":"a","completionPolicy":{"type":"Always"},"parallelism":"50%"}}`
		odder   = `{"spec":{"image":"B","completionPolicy":{"type":"Always"},"parallelism":"50%"}}`
		both    = `{"spec":{"image":"B","completionPolicy":{"type":"Always"},"pullSecrets":["s"]}}`
		leaving = `{"metadata":{"deletionTimestamp":"2024-05-06T07:08:09Z"},"spec":{"image":"B"}}`
		manyNew = `{"spec":{"images":["a","a"],"completionPolicy":{"type":"Always"}}}`
		empty   = `{"spec":{}}`
	)
	sandbox := func(bytes int) string {
		return strings.Replace(good, `"image"`, `"sandboxConfig":{"labels":{"a":"`+strings.Repeat("x", bytes)+`"}},"image"`,
			1)
	}
	off := imagepull.Options{}
	cases := map[string]struct {
		why, kind, version, now, stored string
		options                         imagepull.Options
		code                            int32
		message                         string
		warnings                        int
	}{
		"job": {"it is good", job, "v1beta1", good, "", open(), 0, "", 0},
		"odd job": {
			"the path is reported", job, "v1alpha1", odd, "", open(), 400,
			`spec.parallelism: Invalid value: "50%": must be a number of nodes, and no percentage`, 0,
		},
		"odd job before": {
			"its finalizer must come off", job, "v1beta1", odd, odd, open(), 0, "", 1,
		},
		"odder than before": {
			"the new fault is not borne", job, "v1beta1", odder, odd, open(), 400,
			"spec.image: Invalid value", 1,
		},
		"odd node": {
			"the tag is reported", node, "v1beta1", `{"spec":{"images":{"n":{"tags":[{"tag":"1"}]}}}}`, "",
			open(), 400, "spec.images[n].tags[1].createdAt: Required value", 0,
		},
		"secrets": {
			"nodes may have used those that were given", job, "v1beta1", secret, good, open(), 403,
			"spec.pullSecrets: Forbidden: spec.pullSecrets is immutable", 0,
		},
		"secrets first": {
			"they come before what is wrong", job, "v1alpha1", both, good, open(), 403,
			"spec.pullSecrets: Forbidden: spec.pullSecrets is immutable", 0,
		},

		"long sandbox": {
			"all nodes would store it", job, "v1beta1", sandbox(20000), "", open(), 400,
			"spec.sandboxConfig: Invalid value: 20007: must be at most 16384 bytes as JSON", 0,
		},
		"long sandbox before": {
			"its finalizer must come off", job, "v1alpha1", sandbox(20000), sandbox(20000), open(), 0,
			"", 1,
		},
		"no jobs": {
			"as by default", job, "v1beta1", good, "", off, 403,
			"no image is pulled for a job: feature gate ImagePullJobGate is off", 0,
		},
		"no jobs but nodes": {"they are for daemons", node, "v1beta1", empty, "", off, 0, "", 0},
		"no daemon": {
			"no daemon pulls", node, "v1beta1", empty, "",
			imagepull.Options{NoDaemon: true},
			403,
			"no image is pulled ahead: feature gate KruiseDaemon is off", 0,
		},
		"off, changed": {
			"what stays is not open to changes", job, "v1beta1", good, good, off, 403,
			"no image is pulled for a job", 0,
		},
		"off, leaving": {"its finalizer must come off", job, "v1beta1", leaving, leaving, off, 0, "", 0},
		"off before decoding": {
			"the answer is the same for all", job, "v1beta1", `{"spec":7}`, "", off, 403, "no image is pulled for a job", 0,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := review(t, c.options, validate, c.kind, [3]string{c.version, c.now, c.stored})
			want := plaintest.Want{
				Code: c.code, Text: c.message, Warnings: c.warnings,
				Paths: strings.Join(plaintest.Paths(answer), " "),
			}
			plaintest.Answers(t, c.why, want, answer)
		})
	}
}

// What the schema finds later, or what is nothing, is no fault of the defaults.
func TestOddObjects(t *testing.T) {
	cases := map[string]struct {
		why, kind, version, now string
		code                    int32
	}{
		"a wrong type": {
			why: "the schema says it better", kind: job, version: "v1beta1", now: `{"spec":{"image":7}}`,
			code: 400,
		},
		"wrong tags": {
			why: "as above", kind: node, version: "v1beta1",
			now: `{"spec":{"images":{"a":{"tags":[7,{"tag":1},null]}}}}`, code: 400,
		},
		"null in parts": {
			why: "null is nothing", kind: job, version: "v1alpha1", now: `{"metadata":null,"spec":null}`,
			code: 400,
		},
		"null images": {why: "null is nothing", kind: node, version: "v1beta1", now: `{"spec":{"images":{"a":null}}}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			change := [3]string{c.version, c.now, ""}
			if got := plaintest.Code(review(t, open(), mutate, c.kind, change)); got != 0 {
				t.Errorf("%s: %d for defaults", c.why, got)
			}
			if got := plaintest.Code(review(t, open(), validate, c.kind, change)); got != c.code {
				t.Errorf("%s: %d, want %d", c.why, got, c.code)
			}
		})
	}
}
