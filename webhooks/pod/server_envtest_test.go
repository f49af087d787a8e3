//go:build envtest

package pod_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		{"Relabelled", testRelabelled},
		{"Refused", testRefused},
		{"Namespaces", testNamespaces},
		{"Gates", testGates},
		{"Follower", testFollower},
		{"SubsetPatches", testSubsetPatches},
		{"Policy", testPolicy},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, g) })
	}
}

// An API server stores what sets add: containers of each sort, volumes, variables, sizes, metadata and the record.
func testInjected(t *testing.T, g *ground) {
	g.have(t, concerned{}, newSet(t, "a", `{selector: {matchLabels: {app: web}}, containers: [
		{name: log, image: log:1, shareVolumePolicy: {type: enabled}, transferEnv: [{sourceContainerName: main, envName: A}],
			volumeMounts: [{name: own, mountPath: /own}],
			resourcesPolicy: {targetContainersMode: sum, targetContainersNameRegex: .*,
				resourcesExpr: {limits: {cpu: cpu*50%}}}},
		{name: hot, image: h, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}],
		initContainers: [{name: mesh, image: x, restartPolicy: Always}], updateStrategy: {type: NotUpdate},
		volumes: [{name: own, emptyDir: {}}], imagePullSecrets: [{name: s}],
		patchPodMetadata: [{patchPolicy: Overwrite, annotations: {k: v}}]}`))
	p := newPod(t, g.Namespace(t), `{metadata: {name: p, labels: {app: web}}, spec: {volumes: [{name: data, emptyDir: {}}],
		containers: [{name: main, image: m, env: [{name: A, value: a}], resources: {limits: {cpu: 1}},
			volumeMounts: [{name: data, mountPath: /data}]}]}}`)
	if err := g.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	same(t, "the containers", []string{"main=m", "log=log:1", "hot-1=h", "hot-2=e"}, describeTyped(t, p))
	log := p.Spec.Containers[1]
	got := []string{
		p.Spec.InitContainers[0].Name, p.Annotations["kruise.io/sidecarset-injected-list"], p.Annotations["k"],
		log.Resources.Limits.Cpu().String(), p.Spec.ImagePullSecrets[0].Name,
	}
	for _, m := range log.VolumeMounts {
		got = append(got, m.MountPath)
	}
	for _, e := range log.Env {
		got = append(got, e.Name+"="+e.Value)
	}
	same(t, "what is with them", []string{"mesh", "a", "v", "500m", "s", "/own", "/data", "IS_INJECTED=true", "A=a"}, got)
	if calls, _ := g.took(); calls != 1 {
		t.Errorf("%d calls", calls)
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
	for i := range 5 {
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
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{"env": "prod"}}}
	g.create(t, namespace)
	// API servers learn of namespaces in their own time, too.
	g.until(t, "the pod is not sent", func(ctx context.Context) error {
		p := newPod(t, namespace.Name, plain)
		if err := g.Client.Create(ctx, p, client.DryRunAll); err != nil {
			return err
		}
		if calls, _ := g.took(); calls == 0 {
			return errors.New("no call")
		}
		same(t, "the containers", []string{"main=m", "log=log:1"}, describeTyped(t, p))
		return nil
	})
}

// A namespace that gets the label later has its pods injected from then on.
func testRelabelled(t *testing.T, g *ground) {
	g.have(t, concerned{}, newSet(t, "a", logs[:len(logs)-1]+`, namespaceSelector: {matchLabels: {relabelled: "yes"}}}`))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.Namespace(t)}}
	p := newPod(t, namespace.Name, plain)
	if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	same(t, "before", []string{"main=m"}, describeTyped(t, p))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"relabelled":"yes"}}}`))
	if err := g.Client.Patch(t.Context(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	g.until(t, "a pod is not injected", func(ctx context.Context) error {
		again := newPod(t, namespace.Name, plain)
		if err := g.Client.Create(ctx, again, client.DryRunAll); err != nil {
			return err
		}
		if got := describeTyped(t, again); !slices.Equal(got, []string{"main=m", "log=log:1"}) {
			return errors.New(strings.Join(got, " "))
		}
		return nil
	})
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
