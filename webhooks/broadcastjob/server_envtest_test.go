//go:build envtest

package broadcastjob_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/broadcastjob"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"broadcastjobs"}, Setup: serve, Bad: newJob(t, "v1beta1", "default", `{"failurePolicy":{"type":"Retry"}}`),
	})
	k := kind()
	t.Run("Manifests", func(t *testing.T) { k.Manifests(t, g) })
	t.Run("Defaults", func(t *testing.T) { testDefaults(t, g) })
	t.Run("Template", func(t *testing.T) { testTemplate(t, g) })
	t.Run("Recorded", func(t *testing.T) { k.Recorded(t, g) })
	t.Run("Versions", func(t *testing.T) { testVersions(t, g) })
	t.Run("Update", func(t *testing.T) { testUpdate(t, g) })
	reviewtest.NoTemplates(t, g)
	t.Run("Rules", func(t *testing.T) { testRules(t, g) })
}

func serve(mgr ctrl.Manager, api client.Client) error {
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	w, err := broadcastjob.New(api, broadcastjob.Options{})
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

func kind() reviewtest.Kind { return reviewtest.Kind{Name: "broadcastjob", New: newJob} }

// newJob is a job of one container whose spec is changed by a merge patch.
func newJob(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	job := &unstructured.Unstructured{}
	if err := job.UnmarshalJSON([]byte(object(t, version, namespace, patch))); err != nil {
		t.Fatal(err)
	}
	return job
}

// testDefaults: what a job leaves out is filled in, the restart policy too.
func testDefaults(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		job := newJob(t, version, namespace, `{"template":{"spec":{"restartPolicy":null}}}`)
		if err := g.Client.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, path := range []string{"parallelism", "completionPolicy", "failurePolicy"} {
			got[path] = reviewtest.Field(job, "spec", path)
		}
		pod, _ := reviewtest.Field(job, "spec", "template", "spec").(map[string]any)
		got["restartPolicy"], got["dnsPolicy"] = pod["restartPolicy"], pod["dnsPolicy"]
		containers, _ := pod["containers"].([]any)
		got["imagePullPolicy"] = containers[0].(map[string]any)["imagePullPolicy"]
		want := map[string]any{
			"parallelism": int64(2147483647), "completionPolicy": map[string]any{"type": "Always"}, "failurePolicy": map[string]any{"type": "FailFast"},
			"restartPolicy": "OnFailure", "dnsPolicy": "ClusterFirst", "imagePullPolicy": "Always",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

// testTemplate: the API server validates the template, and its faults have paths in the job.
func testTemplate(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for patch, path := range map[string]string{
			`{"template":{"spec":{"containers":[{"name":"A b","image":"x"}]}}}`:                         "spec.template.spec.containers[0].name",
			`{"template":{"spec":{"containers":null}}}`:                                                 "spec.template.spec.containers",
			`{"template":{"metadata":{"labels":{"a":"no value!"}}}}`:                                    "spec.template.labels",
			`{"template":{"spec":{"nodeSelector":{"no key!":"x"}}}}`:                                    "spec.template.spec.nodeSelector",
			`{"template":{"spec":{"volumes":[{"name":"a","emptyDir":{}},{"name":"a","emptyDir":{}}]}}}`: "spec.template.spec.volumes[1].name",
		} {
			err := g.Client.Create(t.Context(), newJob(t, version, namespace, patch))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), path+": ") {
				t.Errorf("%s: want a fault at %s, got %v", version, path, err)
			}
		}
		number := newJob(t, version, namespace, `{"template":{"spec":{"containers":7}}}`)
		if err := g.Client.Create(t.Context(), number); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: containers are a number: %v", version, err)
		}
		unknown := newJob(t, version, namespace, `{"template":{"spec":{"fromTheFuture":{"n":1}}}}`)
		if err := g.Client.Create(t.Context(), unknown); err != nil || reviewtest.Field(unknown, "spec", "template", "spec", "fromTheFuture", "n") != int64(1) {
			t.Errorf("%s: a field of a later Kubernetes: %v", version, err)
		}
	}
}

// testVersions writes a job in one version and reads it in the other.
func testVersions(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	const full = `{"parallelism":"20%","paused":true,"completionPolicy":{"type":"Always","activeDeadlineSeconds":7,"ttlSecondsAfterFinished":0},"failurePolicy":{"type":"Pause","restartLimit":3}}`
	for from, to := range map[string]string{"v1alpha1": "v1beta1", "v1beta1": "v1alpha1"} {
		job := newJob(t, from, namespace, full)
		if err := g.Client.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		other := newJob(t, to, namespace, "")
		if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(job), other); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(job.Object["spec"], other.Object["spec"]); diff != "" {
			t.Errorf("from %s to %s:\n%s", from, to, diff)
		}
	}
}

// testUpdate: every field can change, and a fault that is stored is no reason to reject an update of something else.
func testUpdate(t *testing.T, g *reviewtest.Ground) {
	job := newJob(t, "v1beta1", g.Namespace(t), "")
	if err := g.Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	changed := newJob(t, "v1beta1", job.GetNamespace(), `{"parallelism":1,"completionPolicy":{"type":"Never"},"failurePolicy":{"type":"Continue"},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"OnFailure","containers":[{"name":"other","image":"check:2"}]}}}`)
	job.Object["spec"] = changed.Object["spec"]
	if err := g.Client.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	calls := g.Calls.Of(func() {
		_ = unstructured.SetNestedField(job.Object, true, "spec", "paused")
		if err := g.Client.Update(t.Context(), job); err != nil {
			t.Error(err)
		}
	})
	if len(calls) > 0 {
		t.Errorf("an update beside the template costs %v", calls)
	}
}

// testRules has the webhooks and the policy review the same jobs.
func testRules(t *testing.T, g *reviewtest.Ground) {
	stored := newJob(t, "v1beta1", g.Namespace(t), "")
	if err := g.Client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	alone := reviewtest.Alone{Defaulted: "parallelism", Bad: `{"failurePolicy":{"type":"x"}}`, At: "spec.failurePolicy.type"}
	kind().Policy(t, g, alone, func(t *testing.T, reviewer string) { reviewAll(t, g, stored, reviewer) })
}

// reviewAll expects rejections by a judge, each for its reason, of new jobs and of updates.
func reviewAll(t *testing.T, g *reviewtest.Ground, stored *unstructured.Unstructured, judge string) {
	cases := map[string]struct{ patch, want string }{
		"nothing is set":       {``, ""},
		"everything is set":    {`{"parallelism":"50%","completionPolicy":{"type":"Always","activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0},"failurePolicy":{"type":"Continue","restartLimit":2}}`, ""},
		"a negative number":    {`{"parallelism":-1}`, "spec.parallelism: "},
		"a bad percentage":     {`{"parallelism":"half"}`, "spec.parallelism: "},
		"a fraction":           {`{"parallelism":"33.3%"}`, ""},
		"a fraction of one":    {`{"parallelism":"+.5%"}`, ""},
		"nothing at all":       {`{"parallelism":"-0.0%"}`, ""},
		"a negative fraction":  {`{"parallelism":"-0.5%"}`, "spec.parallelism: "},
		"a point alone":        {`{"parallelism":".%"}`, "spec.parallelism: "},
		"a completion":         {`{"completionPolicy":{"type":"Sometimes"}}`, "spec.completionPolicy.type: "},
		"a life without end":   {`{"completionPolicy":{"type":"Never","ttlSecondsAfterFinished":1}}`, "spec.completionPolicy.ttlSecondsAfterFinished: "},
		"a deadline of never":  {`{"completionPolicy":{"type":"Never","activeDeadlineSeconds":1}}`, "spec.completionPolicy.activeDeadlineSeconds: "},
		"a negative life":      {`{"completionPolicy":{"ttlSecondsAfterFinished":-1}}`, "spec.completionPolicy.ttlSecondsAfterFinished: "},
		"a negative deadline":  {`{"completionPolicy":{"activeDeadlineSeconds":-1}}`, "spec.completionPolicy.activeDeadlineSeconds: "},
		"a failure policy":     {`{"failurePolicy":{"type":"Retry"}}`, "spec.failurePolicy.type: "},
		"a negative limit":     {`{"failurePolicy":{"restartLimit":-1}}`, "spec.failurePolicy.restartLimit: "},
		"pods without an end":  {`{"template":{"spec":{"restartPolicy":"Always"}}}`, "spec.template.spec.restartPolicy: "},
		"a label of the kind":  {`{"template":{"metadata":{"labels":{"broadcastjob-name":"x"}}}}`, "spec.template.metadata.labels: "},
		"an empty label of it": {`{"template":{"metadata":{"labels":{"broadcastjob-name":""}}}}`, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				job := newJob(t, version, stored.GetNamespace(), c.patch)
				if err := reviewtest.Says(g.Client.Create(t.Context(), job, client.DryRunAll), judge, c.want); err != nil {
					t.Errorf("%s: create: %v", version, err)
				}
			}
			changed := stored.DeepCopy()
			changed.Object["spec"] = newJob(t, "v1beta1", stored.GetNamespace(), c.patch).Object["spec"]
			if err := reviewtest.Says(g.Client.Update(t.Context(), changed, client.DryRunAll), judge, c.want); err != nil {
				t.Errorf("update: %v", err)
			}
		})
	}
	for _, name := range []string{"with.dot", strings.Repeat("x", 64)} {
		job := newJob(t, "v1beta1", stored.GetNamespace(), "")
		job.SetGenerateName("")
		job.SetName(name)
		if err := reviewtest.Says(g.Client.Create(t.Context(), job, client.DryRunAll), judge, "metadata.name: "); err != nil {
			t.Errorf("%s: %v", fmt.Sprint(name), err)
		}
	}
}
