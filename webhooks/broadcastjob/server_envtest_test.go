//go:build envtest

package broadcastjob_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/broadcastjob"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"broadcastjobs"}, Setup: serve, Bad: newJob(t, "v1beta1", "default", `{"failurePolicy":{"type":"Retry"}}`),
	})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Defaults", func(t *testing.T) { testDefaults(t, g) })
	t.Run("Template", func(t *testing.T) { testTemplate(t, g) })
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	t.Run("Versions", func(t *testing.T) { testVersions(t, g) })
	t.Run("Update", func(t *testing.T) { testUpdate(t, g) })
	var left corev1.PodTemplateList
	if err := g.Client.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d PodTemplates are stored (%v)", len(left.Items), err)
	}
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

// newJob is a job of one container whose spec is changed by a merge patch.
func newJob(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	job := &unstructured.Unstructured{}
	if err := job.UnmarshalJSON([]byte(object(t, version, namespace, patch))); err != nil {
		t.Fatal(err)
	}
	return job
}

// testManifests applies the manifests of the reference's API unchanged, and updates something else in them.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		namespace := g.Namespace(t)
		for _, job := range reviewtest.Manifests(t, version, "broadcastjobs.yaml") {
			job.SetNamespace(namespace)
			if err := g.Client.Create(t.Context(), job, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", version, job.GetName(), err)
			}
			job.SetLabels(map[string]string{"touched": "true"})
			if err := g.Client.Update(t.Context(), job); err != nil {
				t.Errorf("%s, %s: update: %v", version, job.GetName(), err)
			}
		}
	}
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

// testRecorded creates what the reference has defaulted: nothing is left to add.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, recorded := range reviewtest.Recorded(t, "1-created", "broadcastjobs."+version+".yaml") {
			job := newJob(t, version, namespace, "")
			job.Object["spec"] = recorded.DeepCopy().Object["spec"]
			if err := g.Client.Create(t.Context(), job); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(plaintest.Encode(t, recorded.Object["spec"]), plaintest.Encode(t, job.Object["spec"])); diff != "" {
				t.Errorf("%s, %s (-recorded +now):\n%s", version, recorded.GetName(), diff)
			}
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

// testRules has the webhooks review some jobs, then takes them away and installs the policy, which must review alike.
func testRules(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	stored := newJob(t, "v1beta1", namespace, "")
	if err := g.Client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	t.Run("Webhook", func(t *testing.T) { reviewAll(t, g, stored, "denied the request") })
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "broadcastjob-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the API server does not mind the policy alone", func(ctx context.Context) error {
		plain := newJob(t, "v1beta1", namespace, "")
		if err := g.Client.Create(ctx, plain, client.DryRunAll); err != nil {
			return err
		}
		if reviewtest.Field(plain, "spec", "parallelism") != nil {
			return errors.New("there are defaults")
		}
		return reviewtest.Says(g.Client.Create(ctx, newJob(t, "v1beta1", namespace, `{"failurePolicy":{"type":"x"}}`), client.DryRunAll), "kruisekit-broadcastjob", "spec.failurePolicy.type")
	})
	t.Run("Policy", func(t *testing.T) { reviewAll(t, g, stored, "kruisekit-broadcastjob") })
}

// reviewAll expects rejections by a judge, each for its reason, of new jobs and of updates.
func reviewAll(t *testing.T, g *reviewtest.Ground, stored *unstructured.Unstructured, judge string) {
	cases := map[string]struct{ patch, want string }{
		"nothing is set":       {``, ""},
		"everything is set":    {`{"parallelism":"50%","completionPolicy":{"type":"Always","activeDeadlineSeconds":0,"ttlSecondsAfterFinished":0},"failurePolicy":{"type":"Continue","restartLimit":2}}`, ""},
		"a negative number":    {`{"parallelism":-1}`, "spec.parallelism: "},
		"a bad percentage":     {`{"parallelism":"half"}`, "spec.parallelism: "},
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
