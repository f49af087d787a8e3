//go:build envtest

package containerrecreaterequest_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
)

const (
	labelActive = "crr.apps.kruise.io/active"
	labelNode   = "crr.apps.kruise.io/node-name"
	labelPod    = "crr.apps.kruise.io/pod-uid"
	acquired    = "crr.apps.kruise.io/unready-acquired"

	// hooks are containers with every kind of hook.
	hooks = `{"nodeName":"node-1","terminationGracePeriodSeconds":7,"containers":[
		{"name":"plain","image":"a","ports":[{"containerPort":80}]},
		{"name":"exec","image":"a","ports":[{"containerPort":81}],"lifecycle":{"preStop":{"exec":{"command":["sync"]}}}},
		{"name":"get","image":"a","ports":[{"name":"web","containerPort":82},{"containerPort":83,"protocol":"UDP"}],
			"lifecycle":{"preStop":{"httpGet":{"path":"/bye","port":"web"}}}},
		{"name":"socket","image":"a","lifecycle":{"preStop":{"tcpSocket":{"port":84}}}},
		{"name":"sleep","image":"a","lifecycle":{"preStop":{"sleep":{"seconds":5}}}}],
		"initContainers":[{"name":"setup","image":"a"},{"name":"mesh","image":"a","restartPolicy":"Always"}]}`
	plain = `{"nodeName":"node-1","containers":[{"name":"app","image":"a"},{"name":"log","image":"a"}]}`
)

// testFilled reads back what a request gets when it is made: how its containers run, their hooks, and of which node they are.
func testFilled(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	pod := newPod(t, g, namespace, "web", hooks)
	virtual := newPod(t, g, namespace, "far", strings.Replace(plain, "node-1", "virtual", 1))
	const all = `{"podName":"web","containers":[{"name":"plain"},{"name":"exec"},{"name":"get"},{"name":"socket"},{"name":"sleep"},{"name":"mesh"}]}`
	context := func(name, restarts string) string {
		return `"statusContext":{"containerID":"containerd://` + name + `","restartCount":` + restarts + `}`
	}
	cases := map[string]struct {
		why, spec, want string
		pod             *corev1.Pod
		node            string
		labels          map[string]string
	}{
		"hooks": {
			"they are copied but for the sleep, which has no place here; ports only where a hook needs them", all,
			`{"containers":[{"name":"plain",` + context("plain", "0") + `},` +
				`{"name":"exec","preStop":{"exec":{"command":["sync"]}},` + context("exec", "1") + `},` +
				`{"name":"get","ports":[{"containerPort":82,"name":"web","protocol":"TCP"},{"containerPort":83,"protocol":"UDP"}],` +
				`"preStop":{"httpGet":{"path":"/bye","port":"web","scheme":"HTTP"}},` + context("get", "2") + `},` +
				`{"name":"socket","preStop":{"tcpSocket":{"port":84}},` + context("socket", "3") + `},` +
				`{"name":"sleep",` + context("sleep", "4") + `},{"name":"mesh",` + context("mesh", "7") + `}],` +
				`"podName":"web","strategy":{"failurePolicy":"Fail","terminationGracePeriodSeconds":7}}`,
			pod, "node-1", nil,
		},
		"given": {
			"what the user says stays", `{"podName":"web","containers":[{"name":"plain"}],"strategy":{"failurePolicy":"Ignore","orderedRecreate":true,"terminationGracePeriodSeconds":0},"activeDeadlineSeconds":3}`,
			`{"activeDeadlineSeconds":3,"containers":[{"name":"plain",` + context("plain", "0") + `}],` +
				`"podName":"web","strategy":{"failurePolicy":"Ignore","orderedRecreate":true,"terminationGracePeriodSeconds":0}}`,
			pod, "node-1", nil,
		},
		"virtual node": {
			"daemons know by the label that it is not theirs", `{"podName":"far","containers":[{"name":"log"}],"strategy":{}}`,
			`{"containers":[{"name":"log",` + context("log", "1") + `}],"podName":"far","strategy":{"failurePolicy":"Fail","terminationGracePeriodSeconds":30}}`,
			virtual, "virtual",
			map[string]string{"type": "virtual-kubelet"},
		},
	}
	for name, c := range cases {
		for _, version := range both {
			t.Run(name+"/"+version, func(t *testing.T) {
				r := newObject(t, version, namespace, c.spec)
				r.SetLabels(map[string]string{"team": "a", labelNode: "elsewhere"})
				if err := g.Client.Create(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				labels := map[string]string{"team": "a", labelActive: "true", labelNode: c.node, labelPod: string(c.pod.UID)}
				maps.Copy(labels, c.labels)
				if diff := cmp.Diff(labels, r.GetLabels()); diff != "" {
					t.Errorf("%s: labels (-want +got):\n%s", c.why, diff)
				}
				if diff := cmp.Diff(normal(t, c.want), plaintest.Encode(t, r.Object["spec"])); diff != "" {
					t.Errorf("%s: spec (-want +got):\n%s", c.why, diff)
				}
				if diff := cmp.Diff([]string{version}, managers(r)); diff != "" {
					t.Errorf("the object was written in another version:\n%s", diff)
				}
			})
		}
	}
}

// managers are the versions in which fields were written.
func managers(o *unstructured.Unstructured) []string {
	var all []string
	for _, m := range o.GetManagedFields() {
		all = append(all, strings.TrimPrefix(m.APIVersion, "apps.kruise.io/"))
	}
	return all
}

// normal is JSON with sorted keys.
func normal(t *testing.T, text string) string {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(`{"kind":"x","spec":` + text + `}`)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return plaintest.Encode(t, o.Object["spec"])
}

// testRecorded asks for what the reference was asked for, of a pod like its own, and gets what it stored.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	for _, version := range both {
		recorded := reviewtest.Recorded(t, "3-updated", crr+"."+version+".yaml")
		if len(recorded) != 1 {
			t.Fatalf("%d are recorded", len(recorded))
		}
		want := recorded[0]
		namespace := g.Namespace(t)
		pod := newPod(t, g, namespace, "meshed", `{"nodeName":"node-1","terminationGracePeriodSeconds":2,"containers":[{"name":"main","image":"a"},{"name":"proxy","image":"a"}]}`)
		pod.Status.ContainerStatuses[0].ContainerID = reviewtest.Field(want, "spec", "containers").([]any)[0].(map[string]any)["statusContext"].(map[string]any)["containerID"].(string)
		if err := g.Client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		applied := &unstructured.Unstructured{}
		if err := applied.UnmarshalJSON([]byte(want.GetAnnotations()[corev1.LastAppliedConfigAnnotation])); err != nil {
			t.Fatal(err)
		}
		if _, ok := reviewtest.Field(applied, "spec").(map[string]any); !ok {
			t.Fatal("nothing was applied")
		}
		got := newObject(t, version, namespace, plaintest.Encode(t, applied.Object["spec"]))
		if err := g.Client.Create(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		// A typed client of the reference has written the object once more, and left out what is zero.
		unstructured.RemoveNestedField(got.Object, "spec", "strategy", "orderedRecreate")
		if diff := cmp.Diff(plaintest.Encode(t, want.Object["spec"]), plaintest.Encode(t, got.Object["spec"])); diff != "" {
			t.Errorf("%s (-recorded +now):\n%s", version, diff)
		}
		labels := want.GetLabels()
		labels[labelPod], labels[labelActive] = string(pod.UID), "true"
		if diff := cmp.Diff(labels, got.GetLabels()); diff != "" {
			t.Errorf("%s: labels (-recorded +now):\n%s", version, diff)
		}
		// And such a client may write it here.
		if err := g.Client.Update(t.Context(), got); err != nil {
			t.Errorf("%s: update: %v", version, err)
		}
	}
}

// testMistakes has somebody say what is wrong with a manifest: the webhook, which comes first, or the schema.
func testMistakes(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	newPod(t, g, namespace, "web-4x7wz", `{"nodeName":"node-1","containers":[{"name":"nginx","image":"a"},{"name":"exporter","image":"a"}]}`)
	newPod(t, g, namespace, "db-0", `{"nodeName":"node-1","containers":[{"name":"postgres","image":"a"}]}`)
	inWebhook := map[string]string{ // what the webhook says in other words
		"a deadline before the beginning":    "spec.activeDeadlineSeconds: Invalid value",
		"periods that end before they begin": "spec.strategy.terminationGracePeriodSeconds: Invalid value",
		"containers by their names alone":    "spec.containers: a string where",
	}
	for _, version := range both {
		for _, o := range reviewtest.Manifests(t, version, crr+".yaml") {
			o.SetNamespace(namespace)
			if err := g.Client.Create(t.Context(), o, client.FieldValidation("Strict"), client.DryRunAll); err != nil {
				t.Errorf("%s, %s: %v", version, o.GetName(), err)
			}
		}
		for _, m := range reviewtest.Mistakes(t, crr+".yaml") {
			if m.Version != "" && m.Version != version || m.Patch["spec"] == nil {
				continue // a status is nobody's to send along with a new object
			}
			t.Run(m.Why+"/"+version, func(t *testing.T) {
				for _, o := range reviewtest.Manifests(t, version, crr+".yaml") {
					if o.GetName() != m.Manifest {
						continue
					}
					plaintest.Merge(o.Object, m.Patch)
					o.SetNamespace(namespace)
					want := m.Refusal
					if here, ok := inWebhook[m.Why]; ok {
						want = here
					}
					err := g.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("want %q, got %v", want, err)
					}
				}
			})
		}
		for _, o := range reviewtest.Manifests(t, version, crr+".refused.yaml") {
			o.SetNamespace(namespace)
			reviewtest.Refused(t, g.Client.Create(t.Context(), o), 400,
				"spec.containers[0].preStop", "spec.containers[0].ports", "spec.containers[0].statusContext",
				"spec.containers[1].preStop", "spec.containers[1].statusContext",
				"spec.containers[2].preStop", "spec.containers[2].statusContext")
		}
	}
}

// testRefusals has every refusal that the reference knows.
func testRefusals(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	newPod(t, g, namespace, "web", plain)
	newPod(t, g, namespace, "homeless", strings.Replace(plain, `"nodeName":"node-1",`, "", 1))
	newPod(t, g, namespace, "lost", strings.Replace(plain, "node-1", "nowhere", 1))
	states := map[string]func(*corev1.Pod){
		"done":    func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"failed":  func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"blank":   func(p *corev1.Pod) { p.Status.ContainerStatuses = nil },
		"pulling": func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "" },
		"sidecars": func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
			p.Status.Conditions = []corev1.PodCondition{{Type: "SidecarTerminated", Status: corev1.ConditionTrue}}
		},
	}
	for name, change := range states {
		pod := newPod(t, g, namespace, name, plain)
		change(pod)
		if err := g.Client.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	leaving := newPod(t, g, namespace, "leaving", plain)
	if err := g.Client.Delete(t.Context(), leaving); err != nil { // it waits for a kubelet
		t.Fatal(err)
	}
	of := func(pod string) string { return `{"podName":"` + pod + `","containers":[{"name":"app"}]}` }
	with := func(strategy string) string {
		return `{"podName":"web","containers":[{"name":"app"}],"strategy":{` + strategy + `}}`
	}
	cases := map[string]struct{ spec, path string }{
		"good":                       {of("web"), ""},
		"ended but for its sidecars": {of("sidecars"), ""},
		"empty pod name":             {of(""), "spec.podName"},
		"no containers":              {`{"podName":"web","containers":[]}`, "spec.containers"},
		"short deadline":             {`{"podName":"web","containers":[{"name":"app"}],"activeDeadlineSeconds":2}`, "spec.activeDeadlineSeconds"},
		"negative grace":             {with(`"terminationGracePeriodSeconds":-1`), "spec.strategy.terminationGracePeriodSeconds"},
		"negative unready grace":     {with(`"unreadyGracePeriodSeconds":-1`), "spec.strategy.unreadyGracePeriodSeconds"},
		"unknown policy":             {with(`"failurePolicy":"Retry"`), "spec.strategy.failurePolicy"},
		"empty policy":               {with(`"failurePolicy":""`), ""},
		"no such pod":                {of("other"), "spec.podName"},
		"no name of a pod":           {of("a/b"), "spec.podName"},
		"ended":                      {of("done"), "spec.podName"},
		"failed":                     {of("failed"), "spec.podName"},
		"terminating":                {of("leaving"), "spec.podName"},
		"on no node":                 {of("homeless"), "spec.podName"},
		"node is gone":               {of("lost"), "spec.podName"},
		"no status":                  {of("blank"), "spec.containers[0].name"},
		"has not run":                {of("pulling"), "spec.containers[0].name"},
		"unknown container":          {strings.Replace(of("web"), "app", "other", 1), "spec.containers[0].name"},
		"twice":                      {`{"podName":"web","containers":[{"name":"app"},{"name":"app"}]}`, "spec.containers[1].name"},
		"a hook":                     {`{"podName":"web","containers":[{"name":"app","preStop":{}}]}`, "spec.containers[0].preStop"},
		"ports":                      {`{"podName":"web","containers":[{"name":"app","ports":[{"containerPort":1}]}]}`, "spec.containers[0].ports"},
		"a context":                  {`{"podName":"web","containers":[{"name":"app","statusContext":{"containerID":"","restartCount":0}}]}`, "spec.containers[0].statusContext"},
	}
	for name, c := range cases {
		for _, version := range both {
			t.Run(name+"/"+version, func(t *testing.T) {
				err := g.Client.Create(t.Context(), newObject(t, version, namespace, c.spec), client.DryRunAll)
				if c.path != "" {
					reviewtest.Refused(t, err, 400, c.path)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// stored is a request that was let in.
func stored(t *testing.T, g *reviewtest.Ground, namespace string) *unstructured.Unstructured {
	t.Helper()
	r := newObject(t, "v1beta1", namespace, `{"podName":"web","containers":[{"name":"app"}]}`)
	if err := g.Client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// as reads an object in a version.
func as(t *testing.T, g *reviewtest.Ground, version string, r *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	seen := newObject(t, version, r.GetNamespace(), `{}`)
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(r), seen); err != nil {
		t.Fatal(err)
	}
	return seen
}

// testCalls counts what admissions cost: of the webhook's calls, which are reads alone.
func testCalls(t *testing.T, g *reviewtest.Ground) {
	for _, version := range both {
		namespace := g.Namespace(t)
		newPod(t, g, namespace, "web", plain)
		r := newObject(t, version, namespace, `{"podName":"web","containers":[{"name":"app"},{"name":"log"}]}`)
		cost := func(what string, want map[string]int, do func() error) {
			t.Helper()
			made := g.Calls.Of(func() {
				if err := do(); err != nil {
					t.Errorf("%s, %s: %v", version, what, err)
				}
			})
			if diff := cmp.Diff(want, made); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", version, what, diff)
			}
		}
		cost("create", map[string]int{"get": 2}, func() error { return g.Client.Create(t.Context(), r) })
		cost("update", map[string]int{}, func() error {
			r.SetFinalizers([]string{acquired})
			return g.Client.Update(t.Context(), r)
		})
		cost("status", map[string]int{}, func() error {
			return g.Client.Status().Patch(t.Context(), r, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Recreating"}}`)))
		})
		cost("finalizer", map[string]int{}, func() error {
			r.SetFinalizers(nil)
			return g.Client.Update(t.Context(), r)
		})
		cost("delete", map[string]int{}, func() error { return g.Client.Delete(t.Context(), r) })
		refused := func(spec string) func() error {
			return func() error {
				if err := g.Client.Create(t.Context(), newObject(t, version, namespace, spec)); !apierrors.IsBadRequest(err) {
					return errors.Join(errors.New("want a refusal"), err)
				}
				return nil
			}
		}
		cost("wrong by itself", map[string]int{}, refused(`{"podName":"web","containers":[]}`))
		cost("no pod", map[string]int{"get": 1}, refused(`{"podName":"other","containers":[{"name":"app"}]}`))
	}
}

// testGate: without a daemon there are no new requests and no changes, but what is being deleted can go.
func testGate(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	newPod(t, g, namespace, "web", plain)
	stays, leaves := stored(t, g, namespace), stored(t, g, namespace)
	leaves.SetFinalizers([]string{acquired})
	if err := errors.Join(g.Client.Update(t.Context(), leaves), g.Client.Delete(t.Context(), leaves)); err != nil {
		t.Fatal(err)
	}
	g.Serve(t, serve(containerrecreaterequest.Options{NoDaemon: true}))
	for _, version := range both {
		err := g.Client.Create(t.Context(), newObject(t, version, namespace, `{"podName":"web","containers":[{"name":"app"}]}`), client.DryRunAll)
		reviewtest.Refused(t, err, 403)
		if err == nil || !strings.Contains(err.Error(), "feature gate KruiseDaemon is off") {
			t.Errorf("%s: %v", version, err)
		}
		changed := as(t, g, version, stays)
		changed.SetFinalizers([]string{acquired})
		reviewtest.Refused(t, g.Client.Update(t.Context(), changed, client.DryRunAll), 403)
		gone := as(t, g, version, leaves)
		gone.SetFinalizers(nil)
		if err := g.Client.Update(t.Context(), gone, client.DryRunAll); err != nil {
			t.Errorf("%s: the finalizer of a request that is being deleted: %v", version, err)
		}
	}
	gone := as(t, g, "v1beta1", leaves)
	gone.SetFinalizers(nil)
	if err := g.Client.Update(t.Context(), gone); err != nil {
		t.Error(err)
	}
	g.Serve(t, serve(containerrecreaterequest.Options{}))
}
