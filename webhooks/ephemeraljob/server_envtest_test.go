//go:build envtest

package ephemeraljob_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/ephemeraljob"
)

// TestAdmission shares one API server: the webhook first, and then the policy alone, which must review alike.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{Resources: []string{"ephemeraljobs"}, Setup: serve, Bad: newJob(t, "default", `{"parallelism":-1}`)})
	namespace := g.Namespace(t)
	stored := newJob(t, namespace, ``)
	if err := g.Client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	t.Run("Webhook", func(t *testing.T) { reviewAll(t, g, stored, "denied the request") })
	t.Run("API server", func(t *testing.T) {
		for patch, path := range map[string]string{
			`{"name":"a","image":"b","env":[{"name":"a=b"}]}`:                                                                          "spec.template.ephemeralContainers[0].env[0].name: ",
			`{"name":"a","image":"b","securityContext":{"allowPrivilegeEscalation":false,"privileged":true}}`:                          "spec.template.ephemeralContainers[0].securityContext: ",
			`{"name":"a","image":"b","volumeMounts":[{"name":"x","mountPath":"/x"},{"name":"y","mountPath":"/x"}]}`:                    "spec.template.ephemeralContainers[0].volumeMounts[1].mountPath: ",
			`{"name":"a","image":"b","volumeMounts":[{"name":"x","mountPath":"/x"}],"volumeDevices":[{"name":"y","devicePath":"/y"}]}`: "",
		} {
			job := newJob(t, namespace, `{"template":{"ephemeralContainers":[`+patch+`]}}`)
			if err := reviewtest.Says(g.Client.Create(t.Context(), job, client.DryRunAll), "denied the request", path); err != nil {
				t.Errorf("%s: %v", patch, err)
			}
		}
	})
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "ephemeraljob-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the API server does not mind the policy alone", func(ctx context.Context) error {
		return reviewtest.Says(g.Client.Create(ctx, newJob(t, namespace, `{"parallelism":-1}`), client.DryRunAll), "kruisekit-ephemeraljob", "spec.parallelism")
	})
	t.Run("Policy", func(t *testing.T) { reviewAll(t, g, stored, "kruisekit-ephemeraljob") })
}

func serve(mgr ctrl.Manager, api client.Client) error {
	w, err := ephemeraljob.New(api, ephemeraljob.Options{})
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

// newJob is a job whose spec is changed by a merge patch.
func newJob(t *testing.T, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	const plain = `{"selector":{"matchLabels":{"app":"web"}},"template":{"ephemeralContainers":[{"name":"shell","image":"busybox:1"}]}}`
	job := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"EphemeralJob","metadata":{"generateName":"debug-","namespace":%q},"spec":%s}`, namespace, plaintest.Patched(t, plain, patch))
	if err := job.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return job
}

// reviewAll expects rejections by a judge, each for its reason, of new jobs and of updates.
func reviewAll(t *testing.T, g *reviewtest.Ground, stored *unstructured.Unstructured, judge string) {
	const at = "spec.template.ephemeralContainers"
	with := func(fields string) string {
		return `{"template":{"ephemeralContainers":[{"name":"shell","image":"busybox:1",` + fields + `}]}}`
	}
	for name, c := range map[string]struct{ patch, want string }{
		"nothing more":        {``, ""},
		"everything":          {`{"replicas":0,"parallelism":0,"paused":true,"activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0}`, ""},
		"an expression":       {`{"selector":{"matchLabels":null,"matchExpressions":[{"key":"a","operator":"Exists"}]}}`, ""},
		"all fields":          {with(`"command":["a"],"env":[{"name":"A","value":"b"}],"imagePullPolicy":"Never","terminationMessagePolicy":"File","tty":true,"targetContainerName":"x","resources":{},"ports":[]`), ""},
		"an empty selector":   {`{"selector":{"matchLabels":null}}`, "spec.selector: "},
		"negative replicas":   {`{"replicas":-1}`, "spec.replicas: "},
		"negative pods":       {`{"parallelism":-1}`, "spec.parallelism: "},
		"a negative deadline": {`{"activeDeadlineSeconds":-1}`, "spec.activeDeadlineSeconds: "},
		"a negative life":     {`{"ttlSecondsAfterFinished":-1}`, "spec.ttlSecondsAfterFinished: "},
		"no container":        {`{"template":{"ephemeralContainers":[]}}`, at},
		"an empty container":  {`{"template":{"ephemeralContainers":[{}]}}`, at},
		"a bad name":          {`{"template":{"ephemeralContainers":[{"name":"A b","image":"b"}]}}`, at},
		"a duplicate":         {`{"template":{"ephemeralContainers":[{"name":"a","image":"b"},{"name":"a","image":"b"}]}}`, at},
		"a space":             {`{"template":{"ephemeralContainers":[{"name":"a","image":" b"}]}}`, at},
		"a pull policy":       {with(`"imagePullPolicy":"PullThreeTimes"`), at},
		"a message policy":    {with(`"terminationMessagePolicy":"Mail"`), at},
		"ports":               {with(`"ports":[{"containerPort":1}]`), at},
		"resources":           {with(`"resources":{"limits":{"cpu":"1"}}`), at},
		"a probe":             {with(`"readinessProbe":{"tcpSocket":{"port":1}}`), at},
		"a lifecycle":         {with(`"lifecycle":{"preStop":{"sleep":{"seconds":1}}}`), at},
		"a restart policy":    {with(`"restartPolicy":"Always"`), at},
		"a part of a volume":  {with(`"volumeMounts":[{"name":"a","mountPath":"/a","subPath":"b"}]`), at},
		"a part by a formula": {with(`"volumeMounts":[{"name":"a","mountPath":"/a","subPathExpr":"b"}]`), at},
	} {
		t.Run(name, func(t *testing.T) {
			if err := reviewtest.Says(g.Client.Create(t.Context(), newJob(t, stored.GetNamespace(), c.patch), client.DryRunAll), judge, c.want); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range map[string]struct{ patch, want string }{
		"paused":           {`{"spec":{"paused":true,"parallelism":4}}`, ""},
		"a label":          {`{"metadata":{"labels":{"a":"b"}}}`, ""},
		"another image":    {`{"spec":{"template":{"ephemeralContainers":[{"name":"shell","image":"busybox:2"}]}}}`, "spec.template: "},
		"another selector": {`{"spec":{"selector":{"matchLabels":{"app":"db"}}}}`, "spec.selector: "},
		"negative pods":    {`{"spec":{"parallelism":-1}}`, "spec.parallelism: "},
	} {
		t.Run("update/"+name, func(t *testing.T) {
			err := g.Client.Patch(t.Context(), stored.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(c.patch)), client.DryRunAll)
			if err := reviewtest.Says(err, judge, strings.TrimSpace(c.want)); err != nil {
				t.Error(err)
			}
		})
	}
}
