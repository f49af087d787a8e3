//go:build envtest

package imagepull_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
)

const finalizer = "apps.kruise.io/deletion-protection"

// remove deletes an object that may have a finalizer.
func remove(t *testing.T, g *reviewtest.Ground, o *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also after the test
	if err := client.IgnoreNotFound(g.Client.Delete(ctx, o)); err != nil {
		t.Error(err)
	}
	release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(g.Client.Patch(ctx, o, release)); err != nil {
		t.Error(err)
	}
}

// testManifests applies the manifests of the reference's API unchanged, and then as an update of something else.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, resource := range []string{job, list, node} {
			t.Run(version+"/"+resource, func(t *testing.T) {
				namespace := g.Namespace(t)
				for _, o := range reviewtest.Manifests(t, version, resource+".yaml") {
					if resource != node {
						o.SetNamespace(namespace)
					}
					if err := g.Client.Create(t.Context(), o, client.FieldValidation("Strict")); err != nil {
						t.Errorf("%s: %v", o.GetName(), err)
						continue
					}
					o.SetLabels(map[string]string{"touched": "true"})
					if err := g.Client.Update(t.Context(), o); err != nil {
						t.Errorf("%s: update: %v", o.GetName(), err)
					}
					remove(t, g, o)
				}
			})
		}
	}
}

// testMistakes has the schema say what is wrong, with the webhooks in front of it.
func testMistakes(t *testing.T, g *reviewtest.Ground) {
	for _, resource := range []string{job, list, node} {
		for _, m := range reviewtest.Mistakes(t, resource+".yaml") {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				if m.Version != "" && m.Version != version {
					continue
				}
				t.Run(resource+"/"+m.Why+"/"+version, func(t *testing.T) {
					for _, o := range reviewtest.Manifests(t, version, resource+".yaml") {
						if o.GetName() != m.Manifest {
							continue
						}
						if resource != node {
							o.SetNamespace("default")
						}
						plaintest.Merge(o.Object, m.Patch)
						err := g.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
						if strings.HasPrefix(m.Refusal, "spec.completionPolicy: Required value") {
							if err != nil || reviewtest.Field(o, "spec", "completionPolicy", "type") != "Always" {
								t.Errorf("the webhook does not write the key that is missing: %v", err)
							}
							continue
						}
						if err == nil || !strings.Contains(err.Error(), m.Refusal) {
							t.Errorf("want %q, got %v", m.Refusal, err)
						}
					}
				})
			}
		}
	}
}

func testDefaults(t *testing.T, g *reviewtest.Ground) {
	const (
		always = `"completionPolicy":{"type":"Always"}`
		pull   = `"pullPolicy":{"backoffLimit":3,"timeoutSeconds":600}`
		full   = `{` + always + `,"image":"a","imagePullPolicy":"IfNotPresent",` + pull + `}`
		tag    = `"createdAt":"2024-05-06T07:08:09Z","pullPolicy":{"backoffLimit":3,"timeoutSeconds":600,"ttlSecondsAfterFinished":5}`
	)
	cases := map[string]struct{ why, resource, spec, want string }{
		"job":       {"all that is missing", job, `{"image":"a"}`, full},
		"list":      {"imagePullPolicy is left to its jobs", list, `{"images":["a"]}`, `{` + always + `,"images":["a"],` + pull + `}`},
		"empty job": {"nothing that is there is a value", job, `{"completionPolicy":{"type":""},"image":"a","imagePullPolicy":"","pullPolicy":{}}`, full},
		"zeros": {
			"they are values", job, `{"completionPolicy":{"type":"Never"},"image":"a","imagePullPolicy":"Always","parallelism":0,"pullPolicy":{"backoffLimit":0,"timeoutSeconds":0}}`,
			`{"completionPolicy":{"type":"Never"},"image":"a","imagePullPolicy":"Always","parallelism":0,"pullPolicy":{"backoffLimit":0,"timeoutSeconds":0}}`,
		},
		"tags": {
			"sorted, and asked for now", node, `{"images":{"a/b":{"tags":[{"tag":"2","pullPolicy":{"ttlSecondsAfterFinished":5}},{"tag":"1","version":3,"pullPolicy":{"ttlSecondsAfterFinished":5}}]}}}`,
			`{"images":{"a/b":{"tags":[{` + tag + `,"tag":"1","version":3},{` + tag + `,"tag":"2"}]}}}`,
		},
	}
	for name, c := range cases {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				o := newObject(t, c.resource, version, g.Namespace(t), c.spec)
				create(t, g, o)
				if diff := cmp.Diff(c.want, plaintest.Encode(t, o.Object["spec"])); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.why, diff)
				}
				var finalizers []string
				if c.resource == job && version == "v1alpha1" {
					finalizers = []string{finalizer}
				}
				if diff := cmp.Diff(finalizers, o.GetFinalizers()); diff != "" {
					t.Errorf("finalizers (-want +got):\n%s", diff)
				}
				remove(t, g, o)
			})
		}
	}
}

// testRecorded creates and updates what the reference has stored: nothing is added, and nothing is wrong.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			for _, resource := range []string{job, list, node} {
				t.Run(step+"/"+version+"/"+resource, func(t *testing.T) {
					namespace := g.Namespace(t)
					recorded := reviewtest.Recorded(t, step, resource+"."+version+".yaml")
					if len(recorded) == 0 {
						t.Fatal("nothing is recorded")
					}
					for _, r := range recorded {
						o := newObject(t, resource, version, namespace, plaintest.Encode(t, r.Object["spec"]))
						want := plaintest.Encode(t, r.Object["spec"])
						create(t, g, o)
						if diff := cmp.Diff(want, plaintest.Encode(t, o.Object["spec"])); diff != "" {
							t.Errorf("%s (-recorded +created):\n%s", r.GetName(), diff)
						}
						o.SetLabels(map[string]string{"touched": "true"})
						if err := g.Client.Update(t.Context(), o); err != nil {
							t.Error(err)
						}
						if diff := cmp.Diff(want, plaintest.Encode(t, o.Object["spec"])); diff != "" {
							t.Errorf("%s (-recorded +updated):\n%s", r.GetName(), diff)
						}
						remove(t, g, o)
					}
				})
			}
		}
	}
}

// testRefusals is what clients get for an invalid object of each kind, in both versions. The faults are in the tables of the package
// validation.
func testRefusals(t *testing.T, g *reviewtest.Ground) {
	cases := map[string]struct {
		resource, spec string
		paths          []string
	}{
		"job":          {job, `{"image":"a","completionPolicy":{"activeDeadlineSeconds":599}}`, []string{"spec.completionPolicy.activeDeadlineSeconds"}},
		"list":         {list, `{"images":["a","B",""]}`, []string{"spec.images[1]", "spec.images[2]"}},
		"node image":   {node, `{"images":{"n":{"tags":[{"tag":"1"}]}}}`, []string{"spec.images[n].tags[1].pullPolicy.ttlSecondsAfterFinished"}},
		"two mistakes": {job, `{"image":"A","parallelism":-1}`, []string{"spec.image", "spec.parallelism"}},
		// The schema sees these first, or lets them pass.
		"percentage":  {list, `{"images":["a"],"parallelism":"50%"}`, []string{"spec.parallelism"}},
		"unknown end": {job, `{"image":"a","completionPolicy":{"type":"Sometimes"}}`, []string{"spec.completionPolicy.type"}},
		"same tag": {
			node, `{"images":{"n":{"tags":[{"tag":"1","pullPolicy":{"ttlSecondsAfterFinished":5}},{"tag":"1","pullPolicy":{"ttlSecondsAfterFinished":5}}]}}}`,
			[]string{"spec.images[n].tags[1].tag"},
		},
	}
	for name, c := range cases {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				reviewtest.Refused(t, g.Client.Create(t.Context(), newObject(t, c.resource, version, "default", c.spec), client.DryRunAll), 400, c.paths...)
			})
		}
	}
}

// testUpdates: the secrets of a job stay as they are, those of a list do not; and what an old fault is to an update.
func testUpdates(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			namespace := g.Namespace(t)
			o := newObject(t, job, version, namespace, `{"image":"a","pullSecrets":["s"]}`)
			create(t, g, o)
			for name, secrets := range map[string]string{"added": `["s","t"]`, "removed": `null`, "changed": `["t"]`} {
				changed := o.DeepCopy()
				set(t, changed, "pullSecrets", secrets)
				set(t, changed, "parallelism", `-1`)
				err := g.Client.Update(t.Context(), changed)
				reviewtest.Refused(t, err, 403, "spec.pullSecrets")
				if err == nil || !strings.Contains(err.Error(), "spec.pullSecrets is immutable") {
					t.Errorf("%s: %v", name, err)
				}
			}
			set(t, o, "image", `"b"`)
			if err := g.Client.Update(t.Context(), o); err != nil {
				t.Errorf("all but pullSecrets can change: %v", err)
			}
			set(t, o, "parallelism", `"50%"`)
			reviewtest.Refused(t, g.Client.Update(t.Context(), o), 400, "spec.parallelism")
			remove(t, g, o)

			l := newObject(t, list, version, namespace, `{"images":["a"],"pullSecrets":["s"]}`)
			create(t, g, l)
			set(t, l, "pullSecrets", `["t"]`)
			if err := g.Client.Update(t.Context(), l); err != nil {
				t.Errorf("the secrets of a list: %v", err)
			}
		})
	}
}

// testGates turns the gates off while a job is there.
func testGates(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	o := newObject(t, job, "v1alpha1", namespace, `{"image":"a"}`) // with a finalizer
	create(t, g, o)
	stays := newObject(t, job, "v1beta1", namespace, `{"image":"a"}`)
	create(t, g, stays)
	if err := g.Client.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options imagepull.Options
		text    string
		nodes   bool
	}{
		"ImagePullJobGate": {imagepull.Options{}, "feature gate ImagePullJobGate is off", true},
		"KruiseDaemon":     {imagepull.Options{Jobs: true, NoDaemon: true}, "feature gate KruiseDaemon is off", false},
	} {
		t.Run(name, func(t *testing.T) {
			g.Serve(t, serve(c.options))
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				for resource, spec := range map[string]string{job: `{"image":"a"}`, list: `{"images":["a"]}`, node: `{}`} {
					err := g.Client.Create(t.Context(), newObject(t, resource, version, namespace, spec), client.DryRunAll)
					if resource == node && c.nodes {
						if err != nil {
							t.Errorf("%s %s: %v", version, resource, err)
						}
						continue
					}
					reviewtest.Refused(t, err, 403)
					if err == nil || !strings.Contains(err.Error(), c.text) {
						t.Errorf("%s %s: %v", version, resource, err)
					}
				}
			}
			changed := stays.DeepCopy()
			changed.SetLabels(map[string]string{"a": "b"})
			reviewtest.Refused(t, g.Client.Update(t.Context(), changed, client.DryRunAll), 403)
			leaving := newObject(t, job, "v1beta1", namespace, `{"image":"a"}`)
			if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), leaving); err != nil {
				t.Fatal(err)
			}
			leaving.SetFinalizers(nil)
			if err := g.Client.Update(t.Context(), leaving, client.DryRunAll); err != nil {
				t.Errorf("the finalizer of a job that is being deleted: %v", err)
			}
		})
	}
	remove(t, g, o)
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		t.Errorf("the job is still there: %v", err)
	}
	g.Serve(t, serve(open()))
}
