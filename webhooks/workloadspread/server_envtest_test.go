//go:build envtest

package workloadspread_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ctrl "sigs.k8s.io/controller-runtime"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/workloadspread"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// none has no other WorkloadSpread.
type none struct{}

func (none) In(string) []*appsv1beta1.WorkloadSpread    { return nil }
func (none) Allowed(context.Context) []schema.GroupKind { return nil }

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"workloadspreads"},
		Setup: func(mgr ctrl.Manager, api client.Client) error {
			mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
			w, err := workloadspread.New(none{}, api, workloadspread.Options{})
			if err != nil {
				return err
			}
			return w.SetupWithManager(mgr)
		},
		Bad: newSpread(t, "v1beta1", "default", `{"subsets":[]}`),
	})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { testMistakes(t, g) })
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	t.Run("Patches", func(t *testing.T) { testPatches(t, g) })
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g) })
}

// newSpread is a WorkloadSpread whose spec is changed by a merge patch.
func newSpread(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	ws := &unstructured.Unstructured{}
	if err := ws.UnmarshalJSON([]byte(`{"kind":"WorkloadSpread","apiVersion":"apps.kruise.io/` + version + `",` + good[1:])); err != nil {
		t.Fatal(err)
	}
	if patch != "" {
		change := &unstructured.Unstructured{}
		if err := change.UnmarshalJSON([]byte(`{"kind":"x","spec":` + patch + `}`)); err != nil {
			t.Fatal(err)
		}
		plaintest.Merge(ws.Object, map[string]any{"spec": change.Object["spec"]})
	}
	ws.SetNamespace(namespace)
	ws.SetName("")
	ws.SetGenerateName("s-")
	return ws
}

// testManifests applies the manifests of the reference's API unchanged, and once more as an update of something else.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		namespace := g.Namespace(t)
		for _, ws := range reviewtest.Manifests(t, version, "workloadspreads.yaml") {
			ws.SetNamespace(namespace)
			if err := g.Client.Create(t.Context(), ws, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", version, ws.GetName(), err)
			}
			ws.SetLabels(map[string]string{"touched": "true"})
			if err := g.Client.Update(t.Context(), ws); err != nil {
				t.Errorf("%s, %s: update: %v", version, ws.GetName(), err)
			}
		}
	}
}

// testMistakes makes mistakes in manifests; with the webhook in front the schema still names what is wrong.
func testMistakes(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, m := range reviewtest.Mistakes(t, "workloadspreads.yaml") {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			if m.Version != "" && m.Version != version || strings.HasPrefix(m.Refusal, "status.") { // a creation writes no status
				continue
			}
			t.Run(m.Why+"/"+version, func(t *testing.T) {
				for _, ws := range reviewtest.Manifests(t, version, "workloadspreads.yaml") {
					if ws.GetName() != m.Manifest {
						continue
					}
					plaintest.Merge(ws.Object, m.Patch)
					ws.SetNamespace(namespace)
					err := g.Client.Create(t.Context(), ws, client.DryRunAll, client.FieldValidation("Strict"))
					if err == nil || !strings.Contains(err.Error(), m.Refusal) {
						t.Errorf("want %q, got %v", m.Refusal, err)
					}
				}
			})
		}
	}
}

// testRecorded creates what the reference has stored, in both versions.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, recorded := range reviewtest.Recorded(t, "3-updated", "workloadspreads."+version+".yaml") {
			ws := newSpread(t, version, namespace, "")
			ws.Object["spec"] = recorded.DeepCopy().Object["spec"]
			if err := g.Client.Create(t.Context(), ws); err != nil {
				t.Error(err)
			}
		}
	}
}

// testPatches has a patch tried with the template of the target: by the API server, with a path in the patch.
func testPatches(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "m"}}}}
	if err := g.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ patch, path string }{
		"labels":            {`{"metadata":{"labels":{"zone":"b"}}}`, ""},
		"resources":         {`{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"1"}}}]}}`, ""},
		"an unknown volume": {`{"spec":{"containers":[{"name":"main","volumeMounts":[{"name":"x","mountPath":"/x"}]}]}}`, "spec.subsets[1].patch.spec.containers[0].volumeMounts[0].name"},
		"an image missing":  {`{"spec":{"containers":[{"name":"more"}]}}`, "spec.subsets[1].patch.spec.containers["},
		"a wrong type":      {`{"spec":{"containers":"x"}}`, "spec.subsets[1].patch: "},
		"a wrong quantity":  {`{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"x"}}}]}}`, "spec.subsets[1].patch: "},
		"an unknown policy": {`{"spec":{"restartPolicy":"Sometimes"}}`, "spec.subsets[1].patch.spec.restartPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			ws := newSpread(t, "v1beta1", namespace, `{"subsets":[{"name":"a","maxReplicas":1},{"name":"b","patch":`+c.patch+`}]}`)
			if err := reviewtest.Says(g.Client.Create(t.Context(), ws, client.DryRunAll), "denied the request", c.path); err != nil {
				t.Error(err)
			}
		})
	}
}

// testPolicy has the webhook review some objects, then removes it and installs the policy, which must decide alike.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	t.Run("Webhook", func(t *testing.T) { reviewAll(t, g, namespace, "denied the request") })
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "workloadspread-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the API server does not apply the policy alone", func(ctx context.Context) error {
		return reviewtest.Says(g.Client.Create(ctx, newSpread(t, "v1beta1", namespace, `{"subsets":[]}`), client.DryRunAll), "kruisekit-workloadspread", "spec.subsets")
	})
	t.Run("Policy", func(t *testing.T) { reviewAll(t, g, namespace, "kruisekit-workloadspread") })
}

// reviewAll expects refusals by one reviewer, each for its reason.
func reviewAll(t *testing.T, g *reviewtest.Ground, namespace, reviewer string) {
	subsets := func(limits ...string) string {
		text := `{"subsets":[`
		for i, limit := range limits {
			if i > 0 {
				text += ","
			}
			text += `{"name":"` + string(rune('a'+i)) + `"`
			if limit != "" {
				text += `,"maxReplicas":` + limit
			}
			text += "}"
		}
		return text + "]}"
	}
	adaptive := func(seconds, more string) string {
		return `{"scheduleStrategy":{"type":"Adaptive","adaptive":{"rescheduleCriticalSeconds":` + seconds + `}}` + more + `}`
	}
	for name, c := range map[string]struct{ version, patch, want string }{
		"good":                        {"v1beta1", ``, ""},
		"good, v1alpha1":              {"v1alpha1", ``, ""},
		"an empty target":             {"v1beta1", `{"targetRef":{"name":""}}`, "spec.targetRef"},
		"no subsets":                  {"v1alpha1", `{"subsets":[]}`, "spec.subsets"},
		"a name twice":                {"v1beta1", `{"subsets":[{"name":"a"},{"name":"a"}]}`, "spec.subsets"},
		"no name":                     {"v1beta1", `{"subsets":[{"name":""}]}`, "spec.subsets"},
		"mixed limits":                {"v1beta1", subsets(`1`, `"30%"`, ``), "spec.subsets"},
		"a negative limit":            {"v1alpha1", subsets(`-1`, ``), "spec.subsets"},
		"a negative share":            {"v1beta1", subsets(`"-1%"`, ``), "spec.subsets"},
		"a share of nonsense":         {"v1beta1", subsets(`"x"`, ``), "spec.subsets"},
		"a fraction":                  {"v1beta1", subsets(`"0.2%"`, ``), "spec.subsets"},
		"a whole fraction":            {"v1beta1", subsets(`"20.0%"`, ``), ""},
		"too little":                  {"v1beta1", subsets(`"40%"`, `"20%"`, `"20%"`), "spec.subsets"},
		"all":                         {"v1beta1", subsets(`"40%"`, `"20%"`, `"40%"`), ""},
		"too much":                    {"v1beta1", subsets(`"40%"`, `"70%"`, ``), "spec.subsets"},
		"a share of a StatefulSet":    {"v1beta1", `{"targetRef":{"kind":"StatefulSet"},"subsets":[{"name":"a","maxReplicas":"50%"},{"name":"b"}]}`, "spec.subsets"},
		"adaptive without the type":   {"v1beta1", `{"scheduleStrategy":{"adaptive":{}}}`, "spec.scheduleStrategy.type"},
		"adaptive and a limit":        {"v1beta1", adaptive(`5`, `,"subsets":[{"name":"a"},{"name":"b","maxReplicas":1}]`), "spec.scheduleStrategy.adaptive"},
		"adaptive, one subset":        {"v1beta1", adaptive(`1000`, `,"subsets":[{"name":"a","maxReplicas":1}]`), ""},
		"negative seconds":            {"v1alpha1", adaptive(`-1`, ``), "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds"},
		"too many seconds":            {"v1beta1", adaptive(`296`, ``), "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds"},
		"as many seconds as possible": {"v1beta1", adaptive(`295`, ``), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := reviewtest.Says(g.Client.Create(t.Context(), newSpread(t, c.version, namespace, c.patch), client.DryRunAll), reviewer, c.want); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range map[string]struct{ patch, want string }{
		"another target":  {`{"targetRef":{"name":"db"}}`, "spec.targetRef"},
		"another version": {`{"targetRef":{"apiVersion":"apps/v2"}}`, ""},
		"other subsets":   {`{"subsets":[{"name":"z"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ws := newSpread(t, "v1beta1", namespace, "")
			if err := g.Client.Create(t.Context(), ws); err != nil {
				t.Fatal(err)
			}
			ws.Object["spec"] = newSpread(t, "v1beta1", namespace, c.patch).Object["spec"]
			if err := reviewtest.Says(g.Client.Update(t.Context(), ws), reviewer, c.want); err != nil {
				t.Error(err)
			}
			if err := g.Client.Delete(t.Context(), ws); err != nil {
				t.Error(err)
			}
		})
	}
}
