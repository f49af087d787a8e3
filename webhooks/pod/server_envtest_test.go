//go:build envtest

package pod_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// TestServer is about one API server.
func TestServer(t *testing.T) {
	g := newGround(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *ground)
	}{
		{"Injected", testInjected},
		{"Unconcerned", testUnconcerned},
		{"Launch", testLaunch},
		{"Cases", testCases},
		{"Told", testTold},
		{"HeldBack", testHeldBack},
		{"Canary", testCanary},
		{"Relabelled", testRelabelled},
		{"Ordered", testOrdered},
		{"Refused", testRefused},
		{"Namespaces", testNamespaces},
		{"Entries", testEntries},
		{"Revisions", testRevisions},
		{"Gates", testGates},
		{"Follower", testFollower},
		{"FollowerProbes", testFollowerProbes},
		{"Place", testPlace},
		{"Latency", testLatency},
		{"SubsetPatches", testSubsetPatches},
		{"Down", testDown},
		{"Policy", testPolicy},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, g) })
	}
}

// A pod gets what a set adds, and its labels, unknown to no one, stay.
func testInjected(t *testing.T, g *ground) {
	g.have(t, concerned{}, newSet(t, "a", logs))
	p := newPod(t, g.Namespace(t), plain)
	if err := g.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	same(t, "the containers", []string{"main=m", "log=log:1"}, describeTyped(t, p))
	if calls, _ := g.took(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
	if p.Annotations["kruise.io/sidecarset-injected-list"] != "a" {
		t.Errorf("annotations %v", p.Annotations)
	}
}

func describeTyped(t *testing.T, p *corev1.Pod) []string {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return describe(t, raw)
}

// What nothing concerns is not sent.
func testUnconcerned(t *testing.T, g *ground) {
	g.have(t, concerned{Owned: true, Launch: true}, newSet(t, "a", logs))
	namespace := g.Namespace(t)
	for i := range 20 {
		p := newPod(t, namespace, plain)
		p.Name, p.Labels = fmt.Sprintf("p-%d", i), map[string]string{"app": fmt.Sprintf("other-%d", i)}
		if err := g.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	p := newPod(t, pod.DefaultNamespace, plain)
	if err := g.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if calls, _ := g.took(); calls > 0 {
		t.Errorf("%d calls for pods that nothing concerns, or that are our own", calls)
	}
}

// A pod in an order is named here, and its containers wait for the ConfigMap of that name.
func testLaunch(t *testing.T, g *ground) {
	g.have(t, concerned{Launch: true}, newSet(t, "a", logs))
	p := newPod(t, g.Namespace(t), two)
	if err := g.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(p.Name, "p-") || len(p.Name) != len("p-")+5 {
		t.Errorf("it is called %s", p.Name)
	}
	same(t, "the containers", []string{"main=m wait 0", "side=s wait 10", "log=log:1 wait 0"}, describeTyped(t, p))
	bad := newPod(t, p.Namespace, strings.Replace(two, `"10"`, `abc`, 1))
	refusedBy(t, g.Client.Create(t.Context(), bad), http.StatusUnprocessableEntity, "spec.containers[1].env[0].value")
}

func refusedBy(t *testing.T, err error, code int32, says ...string) {
	t.Helper()
	status, is := err.(apierrors.APIStatus)
	if !is || status.Status().Code != code {
		t.Fatalf("want %d, got %v", code, err)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

// A set that cannot be injected stops the pods that it selects, or is left out with a warning where it may be missing.
func testRefused(t *testing.T, g *ground) {
	pinned := logs[:len(logs)-1] + `, injectionStrategy: {revision: {revisionName: gone}}}`
	g.have(t, concerned{}, newSet(t, "a", pinned), open(newSet(t, "b", strings.ReplaceAll(pinned, "web", "db"))))
	namespace := g.Namespace(t)
	refusedBy(t, g.Client.Create(t.Context(), newPod(t, namespace, plain)), http.StatusUnprocessableEntity, "sidecarset a",
		"revisionName", "gone")
	p := newPod(t, namespace, strings.Replace(plain, "web", "db", 1))
	if err := g.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, warnings := g.took(); len(warnings) != 1 || !strings.Contains(warnings[0], "sidecarset b is left out") {
		t.Errorf("warnings %q", warnings)
	}
}

// A set that selects namespaces by labels meets the first pod of a namespace that no cache has seen.
func testNamespaces(t *testing.T, g *ground) {
	g.have(t, concerned{}, newSet(t, "a", logs[:len(logs)-1]+`, namespaceSelector: {matchLabels: {env: prod}}}`))
	for i := range 10 {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("prod-%d", i), Labels: map[string]string{"env": "prod"},
		}}
		if err := g.Client.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		p := newPod(t, namespace.Name, plain)
		// API servers learn of namespaces in their own time, too.
		g.until(t, "the pod is not sent", func(ctx context.Context) error {
			dry := p.DeepCopy()
			if err := g.Client.Create(ctx, dry, client.DryRunAll); err != nil {
				return err
			}
			if calls, _ := g.took(); calls == 0 {
				return fmt.Errorf("no call")
			}
			p = dry
			return nil
		})
		same(t, "the containers", []string{"main=m", "log=log:1"}, describeTyped(t, p))
	}
}

// A pod that several entries are about comes out as if there were one.
func testEntries(t *testing.T, g *ground) {
	in := func(app, selector string) string {
		return fmt.Sprintf(`{selector: {matchLabels: {app: web}}, containers: [{name: %s, image: i, podInjectPolicy: BeforeAppContainer}], namespaceSelector: {matchLabels: {%s}}}`,
			app, selector)
	}
	sets := []*appsv1beta1.SidecarSet{
		newSet(t, "a", logs), newSet(t, "b", in("b", "env: prod")), open(newSet(t, "c", in("c", "team: x"))),
		newSet(t, "d", in("d", "team: x")),
	}
	g.have(t, concerned{Launch: true, Owned: true}, sets...)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "several", Labels: map[string]string{"env": "prod", "team": "x"},
	}}
	if err := g.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	create := func() (*corev1.Pod, int) {
		p := newPod(t, namespace.Name,
			`{metadata: {name: p, labels: {app: web}, annotations: {apps.kruise.io/container-launch-priority: Ordered},
			ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: c, uid: u, controller: true}]}, spec: {containers: [{name: main, image: m}]}}`)
		if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		calls, _ := g.took()
		p.UID, p.CreationTimestamp, p.ManagedFields = "", metav1.Time{}, nil
		for _, key := range []string{"kruise.io/sidecarset-hash", "kruise.io/sidecarset-hash-without-image"} {
			p.Annotations[key] = withoutTimes(t, p.Annotations[key])
		}
		return p, calls
	}
	var several *corev1.Pod
	g.until(t, "not all entries are about the pod", func(context.Context) error {
		p, calls := create()
		if several = p; calls < 3 {
			return fmt.Errorf("%d calls", calls)
		}
		return nil
	})
	first := slices.IndexFunc(g.config.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return w.Name == "mpod.kb.io"
	})
	g.config.Webhooks = g.config.Webhooks[first : first+1]
	if err := g.Client.Update(t.Context(), g.config); err != nil {
		t.Fatal(err)
	}
	var one *corev1.Pod
	g.until(t, "more than one entry is about the pod", func(context.Context) error {
		p, calls := create()
		if one = p; calls != 1 {
			return fmt.Errorf("%d calls", calls)
		}
		return nil
	})
	same(t, "several calls and one", one, several)
	if n := len(one.Spec.Containers); n != 5 {
		t.Errorf("%d containers", n)
	}
}

// withoutTimes are records without when they were made.
func withoutTimes(t *testing.T, text string) string {
	t.Helper()
	records := map[string]map[string]any{}
	if err := json.Unmarshal([]byte(text), &records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		delete(r, "updateTimestamp")
	}
	data, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A pinned set is taken from its revision, in the manager's namespace and nowhere else.
func testRevisions(t *testing.T, g *ground) {
	for _, namespace := range []string{pod.DefaultNamespace, "default"} {
		r := old()
		r.Namespace, r.UID, r.ResourceVersion, r.Revision = namespace, "", "", 1
		if namespace == "default" {
			r.Data.Raw = []byte(`{"spec":{"containers":[{"name":"log","image":"log:wrong"}]}}`)
			r.Revision = 2
		}
		if err := g.Client.Create(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = g.Client.Delete(context.Background(), &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "a-old",
			}})
		})
	}
	for _, pin := range []string{"revisionName: a-old", "customVersion: v1"} {
		g.have(t, concerned{}, newSet(t, "a", logs[:len(logs)-1]+`, injectionStrategy: {revision: {`+pin+`}}}`))
		p := newPod(t, "default", plain)
		if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		same(t, pin, []string{"main=m", "log=log:old"}, describeTyped(t, p))
	}
}

// Pods of our own controllers get the gate, others only by the entry that may be ignored.
func testGates(t *testing.T, g *ground) {
	g.have(t, concerned{Owned: true})
	namespace := g.Namespace(t)
	for text, want := range map[string][]string{owned: {"main=m", "gate KruisePodReady"}, plain: {"main=m"}} {
		p := newPod(t, namespace, text)
		if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		same(t, "the gates", want, describeTyped(t, p))
	}
	if calls, _ := g.took(); calls != 1 {
		t.Errorf("%d calls for one pod that is concerned", calls)
	}
	g.stop()
	g.options.Readiness.ForAll = true
	g.serve(t)
	g.have(t, concerned{Owned: true, All: true})
	for _, text := range []string{owned, plain} {
		p := newPod(t, namespace, text)
		if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		same(t, "all pods are gated, once", []string{"main=m", "gate KruisePodReady"}, describeTyped(t, p))
	}
	g.stop()
	g.options.Readiness.ForAll = false
	g.serve(t)
}

// While no webhook is up, pods that nothing selects are created, and so are those that may go without; the others wait.
func testDown(t *testing.T, g *ground) {
	g.have(t, concerned{Owned: true, Launch: true}, newSet(t, "a", logs),
		open(newSet(t, "b", strings.ReplaceAll(logs, "web", "nice"))))
	g.stop()
	namespace := g.Namespace(t)
	for app, fails := range map[string]bool{"web": true, "nice": false, "other": false} {
		p := newPod(t, namespace, plain)
		p.Name, p.Labels = app, map[string]string{"app": app}
		if err := g.Client.Create(t.Context(), p); (err != nil) != fails {
			t.Errorf("app %s: %v", app, err)
		}
	}
	g.serve(t)
	p := newPod(t, namespace, plain)
	g.until(t, "it is not created once the webhook is back", func(ctx context.Context) error {
		return g.Client.Create(ctx, p.DeepCopy())
	})
}
