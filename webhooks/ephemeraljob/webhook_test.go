package ephemeraljob_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/ephemeraljob"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const shell = `{"name":"shell","image":"busybox:1","targetContainerName":"main",
	"volumeMounts":[{"name":"data","mountPath":"/d"}]}`

// of returns a job with containers and other fields of the spec.
func of(containers, more string) string {
	return `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"web"}},
		"template":{"ephemeralContainers":[` + containers + `]}` + more + `}}`
}

// templateOf is the pod template that the API server is asked about.
func templateOf(t *testing.T, o client.Object) string {
	t.Helper()
	data, err := json.Marshal(o.(*unstructured.Unstructured).Object["template"])
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func review(t *testing.T, server *plaintest.Server, now, stored string) plaintest.Answer {
	t.Helper()
	w, err := ephemeraljob.New(server.Client(), kinds.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w[ephemeraljob.Path](t.Context(), plaintest.Request(plaintest.Kind("EphemeralJob"), "v1alpha1", now, stored))
}

// TestValidate: what the API server is asked, and what becomes of its answers. The rules have tests of their own.
func TestValidate(t *testing.T) {
	const containers, first = "spec.template.ephemeralContainers", "spec.template.ephemeralContainers[0]"
	at := field.NewPath("template", "spec")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "dry-run", field.ErrorList{
		field.Invalid(at.Child("containers").Index(0).Child("env").Index(0).Child("name"), "bad", "no"),
		field.Invalid(at.Child("volumes").Index(0), "bad", "no"),
	})
	unknown := apierrors.NewBadRequest(`strict decoding error: unknown field "template.spec.containers[0].comand"`)
	for name, c := range map[string]struct {
		why, now, stored string
		fail             error
		want             plaintest.Want
		asked            int
	}{
		"good": {why: "the API server validates the containers", now: of(shell, ``), asked: 1},
		"a fault": {
			why: "the API server is not asked", now: of(`{"name":"a","image":"b","lifecycle":{}}`, ``),
			want: plaintest.Want{Code: 422, Paths: first + ".lifecycle"},
		},
		"a null container": {why: "it is an empty one, which the API server rejects", now: of(`null`, ``), asked: 1},
		"of the API server": {
			why: "its paths are those of the job", now: of(shell, ``), fail: invalid, asked: 1,
			want: plaintest.Want{Code: 422, Paths: first + ".env[0].name " + containers},
		},
		"an unknown field": {
			why: "it is a warning, and does not keep the rest from being validated", now: of(shell, ``), fail: unknown, asked: 2,
			want: plaintest.Want{Warnings: 1},
		},
		"no verdict": {
			why: "the API server does not answer", now: of(shell, ``), fail: errors.New("down"), asked: 1,
			want: plaintest.Want{Code: 500},
		},
		"what can change": {
			why: "the template is not validated again", now: of(shell, `,"paused":true,"parallelism":3`), stored: of(shell, ``),
		},
		"another template": {
			why: "pods keep what they have", now: of(`{"name":"a","image":"b"}`, ``), stored: of(shell, ``),
			want: plaintest.Want{Code: 422, Paths: "spec.template"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &plaintest.Server{}
			server.Rejects = func(client.Object) error {
				if errors.Is(c.fail, unknown) && len(server.Asked) > 1 {
					return nil
				}
				return c.fail
			}
			plaintest.Answers(t, c.why, c.want, review(t, server, c.now, c.stored))
			if len(server.Asked) != c.asked {
				t.Errorf("%s: asked about %q", c.why, server.Asked)
			}
		})
	}
}

// The API server is asked about ordinary containers, without a target, with a volume for each mount.
func TestTemplate(t *testing.T) {
	second := `{"name":"b","image":"b","volumeMounts":[{"name":"data","mountPath":"/d"},{"name":"A b","mountPath":"/e"}],
		"volumeDevices":[{"name":"disk","devicePath":"/x"}]}`
	asked := ""
	server := &plaintest.Server{Rejects: func(o client.Object) error { asked = templateOf(t, o); return nil }}
	plaintest.Answers(t, "good", plaintest.Want{}, review(t, server, of(shell+`,`+second, ``), ""))
	volume := func(name string) string {
		return `{"name":"` + name + `","persistentVolumeClaim":{"claimName":"dry-run"}}`
	}
	want := strings.Join([]string{
		`{"metadata":{"labels":{"app":"dry-run"}},"spec":{"containers":[`,
		`{"image":"busybox:1","name":"shell","volumeMounts":[{"mountPath":"/d","name":"data"}]},`,
		`{"image":"b","name":"b","volumeDevices":[{"devicePath":"/x","name":"disk"}],`,
		`"volumeMounts":[{"mountPath":"/d","name":"data"},{"mountPath":"/e","name":"A b"}]}],`,
		`"volumes":[`, volume("data"), `,`, volume("disk"), `]}}`,
	}, "")
	if asked != want {
		t.Errorf("asked %s\nwant  %s", asked, want)
	}
}
