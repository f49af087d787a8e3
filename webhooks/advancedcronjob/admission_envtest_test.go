//go:build envtest

package advancedcronjob_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/advancedcronjob"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func newObject(t *testing.T, version, namespace, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"AdvancedCronJob","metadata":{"generateName":"web-","namespace":%q},"spec":%s}`,
		version, namespace, spec))); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"advancedcronjobs"}, Bad: newObject(t, "v1beta1", "default", `{"schedule":"* * *","template":{}}`),
		Setup: func(mgr ctrl.Manager, api client.Client) error {
			mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
			w, err := advancedcronjob.New(api, advancedcronjob.Options{})
			if err != nil {
				return err
			}
			return w.SetupWithManager(mgr)
		},
	})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Children", func(t *testing.T) { testChildren(t, g) })
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	var left corev1.PodTemplateList
	var jobs batchv1.JobList
	if err := errors.Join(g.Client.List(t.Context(), &left), g.Client.List(t.Context(), &jobs)); err != nil || len(left.Items)+len(jobs.Items) > 0 {
		t.Errorf("%d PodTemplates and %d Jobs left behind (%v)", len(left.Items), len(jobs.Items), err)
	}
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g) })
}

// testManifests applies the manifests of the reference's API unchanged.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		namespace := g.Namespace(t)
		for _, o := range reviewtest.Manifests(t, version, "advancedcronjobs.yaml") {
			o.SetNamespace(namespace)
			if err := g.Client.Create(t.Context(), o, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", version, o.GetName(), err)
			}
			o.SetLabels(map[string]string{"touched": "true"})
			if err := g.Client.Update(t.Context(), o); err != nil {
				t.Errorf("%s, %s: update: %v", version, o.GetName(), err)
			}
		}
	}
	for _, o := range reviewtest.Manifests(t, "v1beta1", "advancedcronjobs.refused.yaml") {
		o.SetNamespace("default")
		reviewtest.Refused(t, g.Client.Create(t.Context(), o), 422, "spec.template.imageListPullJobTemplate.spec.completionPolicy.ttlSecondsAfterFinished")
	}
}

// testChildren has the API server validate what is created, and default its pods.
func testChildren(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	const at = "spec.template.jobTemplate.spec"
	of := func(spec string) string {
		return `{"schedule":"@daily","template":{"jobTemplate":{"spec":` + spec + `}}}`
	}
	for name, c := range map[string]struct {
		spec  string
		paths []string
	}{
		"no restart policy": {`{"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}`, []string{at + ".template.spec.restartPolicy"}},
		"bad container":     {`{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"A b","image":"b"}]}}}`, []string{at + ".template.spec.containers[0].name"}},
		"bad Job":           {`{"parallelism":-1,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}`, []string{at + ".parallelism"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				reviewtest.Refused(t, g.Client.Create(t.Context(), newObject(t, version, namespace, of(c.spec))), 422, c.paths...)
			}
		})
	}
	o := newObject(t, "v1alpha1", namespace, jobs)
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	stored := newObject(t, "v1beta1", namespace, jobs)
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), stored); err != nil {
		t.Fatal(err)
	}
	pod := reviewtest.Field(stored, "spec", "template", "jobTemplate", "spec", "template", "spec")
	if fields, _ := pod.(map[string]any); fields["dnsPolicy"] != "ClusterFirst" || reviewtest.Field(stored, "spec", "concurrencyPolicy") != "Allow" {
		t.Errorf("stored %v", stored.Object["spec"])
	}
}

// testRecorded updates what OpenKruise has stored: no default is added to its template, and the metadata that its CRD has not stored is.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	o := newObject(t, "v1beta1", namespace, nodes)
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	generation := o.GetGeneration()
	o.SetAnnotations(map[string]string{"touched": "true"})
	if err := g.Client.Update(t.Context(), o); err != nil || o.GetGeneration() != generation {
		t.Errorf("generation %d, was %d: %v", o.GetGeneration(), generation, err)
	}
	if err := unstructured.SetNestedField(o.Object, "@hourly", "spec", "schedule"); err != nil {
		t.Fatal(err)
	}
	calls := g.Calls.Of(func() {
		if err := g.Client.Update(t.Context(), o); err != nil {
			t.Error(err)
		}
	})
	if len(calls) > 0 {
		t.Errorf("another schedule took %v", calls)
	}
	at := []string{"spec", "template", "broadcastJobTemplate", "metadata", "labels"}
	if err := unstructured.SetNestedStringMap(o.Object, map[string]string{"app": "cleanup"}, at...); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Update(t.Context(), o); err != nil || reviewtest.Field(o, append(at, "app")...) != "cleanup" {
		t.Errorf("the labels of the children: %v, stored %v", err, reviewtest.Field(o, at...))
	}
}

// testPolicy has the webhooks judge, then takes them away and installs the policy, which must judge alike.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	t.Run("Webhook", func(t *testing.T) { judgeAll(t, g, namespace, "denied the request") })
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "advancedcronjob-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the API server does not mind the policy alone", func(ctx context.Context) error {
		plain := newObject(t, "v1beta1", namespace, jobs)
		if err := g.Client.Create(ctx, plain, client.DryRunAll); err != nil {
			return err
		}
		if reviewtest.Field(plain, "spec", "concurrencyPolicy") != nil {
			return errors.New("there are defaults")
		}
		return reviewtest.Says(g.Client.Create(ctx, newObject(t, "v1beta1", namespace, `{"schedule":"@daily","template":{}}`), client.DryRunAll), "kruisekit-advancedcronjob", "spec.template")
	})
	t.Run("Policy", func(t *testing.T) { judgeAll(t, g, namespace, "kruisekit-advancedcronjob") })
}

// judgeAll expects refusals by the judge, each for its reason.
func judgeAll(t *testing.T, g *reviewtest.Ground, namespace, judge string) {
	t.Helper()
	plus := func(fields string) string { return jobs[:len(jobs)-1] + "," + fields + "}" }
	pull := func(fields string) string {
		return `{"schedule":"@daily","template":{"imageListPullJobTemplate":{"spec":{"images":["a"],"completionPolicy":` + fields + `}}}}`
	}
	for name, c := range map[string]struct{ spec, want string }{
		"Jobs":               {jobs, ""},
		"pulls":              {pull(`{}`), ""},
		"empty schedule":     {`{"schedule":"",` + jobs[len(`{"schedule":"@daily",`):], "spec.schedule"},
		"two zones":          {`{"schedule":"TZ=UTC @daily","timeZone":"UTC",` + jobs[len(`{"schedule":"@daily",`):], "spec.schedule"},
		"local zone":         {plus(`"timeZone":"LOCAL"`), "spec.timeZone"},
		"good zone":          {plus(`"timeZone":"Asia/Shanghai"`), ""},
		"negative deadline":  {plus(`"startingDeadlineSeconds":-1`), "spec.startingDeadlineSeconds"},
		"endless deadline":   {plus(`"startingDeadlineSeconds":9223372037`), "spec.startingDeadlineSeconds"},
		"negative limit":     {plus(`"failedJobsHistoryLimit":-1`), "spec.failedJobsHistoryLimit"},
		"negative limit too": {plus(`"successfulJobsHistoryLimit":-1`), "spec.successfulJobsHistoryLimit"},
		"limits of zero":     {plus(`"failedJobsHistoryLimit":0,"successfulJobsHistoryLimit":0`), ""},
		"no template":        {`{"schedule":"@daily","template":{}}`, "spec.template"},
		"two templates":      {`{"schedule":"@daily","template":{"jobTemplate":` + jobs[len(`{"schedule":"@daily","template":{"jobTemplate":`):len(jobs)-2] + `,"imageListPullJobTemplate":{"spec":{"images":["a"],"completionPolicy":{}}}}}`, "spec.template"},
		"allowed pulls":      {`{"concurrencyPolicy":"Allow",` + pull(`{}`)[1:], "spec.concurrencyPolicy"},
		"endless pulls":      {pull(`{"type":"Never"}`), "completionPolicy.type"},
		"pulls that leave":   {pull(`{"ttlSecondsAfterFinished":1}`), "completionPolicy.ttlSecondsAfterFinished"},
		"pulls for days":     {pull(`{"activeDeadlineSeconds":86401}`), "completionPolicy.activeDeadlineSeconds"},
		"pulls for a day":    {pull(`{"activeDeadlineSeconds":86400}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := reviewtest.Says(g.Client.Create(t.Context(), newObject(t, "v1beta1", namespace, c.spec), client.DryRunAll), judge, c.want); err != nil {
				t.Error(err)
			}
		})
	}
	o := newObject(t, "v1beta1", namespace, pull(`{}`))
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	template := reviewtest.Field(newObject(t, "v1beta1", namespace, jobs), "spec", "template")
	if err := unstructured.SetNestedField(o.Object, template, "spec", "template"); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(o.Object, "spec", "concurrencyPolicy")
	if err := reviewtest.Says(g.Client.Update(t.Context(), o, client.DryRunAll), judge, "spec"); err != nil {
		t.Error(err)
	}
}
