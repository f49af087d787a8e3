//go:build envtest

package persistentpodstate_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/persistentpodstate"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// account is that of the manager.
const account = "system:serviceaccount:kruise-system:kruise-manager"

// bench has a control plane of its own, for its nodes and the rights of the manager.
type bench struct {
	*podbench.Bench
	cluster *cluster.Cluster
}

// TestWiring runs the reconciler with the rights of the manager, as config/rbac grants them.
func TestWiring(t *testing.T) {
	scheme := podbench.Scheme(t)
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: scheme, CRDDirs: []string{
		"../../config/crd/bases/apps.kruise.io_persistentpodstates.yaml",
		"../../config/crd/bases/apps.kruise.io_statefulsets.yaml",
	}})
	b := &bench{Bench: podbench.On(t, c, scheme), cluster: c}
	b.Cache = cache.Options{}
	b.Config = rest.CopyConfig(b.Config)
	b.Config.Impersonate = rest.ImpersonationConfig{
		UserName: account, Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}})
	b.kubectl("apply", "--server-side", "-k", "../../config/rbac")
	for _, n := range [][2]string{{"n1", "a"}, {"n2", "b"}} {
		b.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n[0], Labels: map[string]string{zone: n[1], host: n[0]}}})
	}
	stop := b.reconcile()
	for _, test := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"generated", testGenerated},
		{"pods", testPods},
		{"nodes", testNodes},
		{"white list", testWhiteList},
		{"deleted", testDeleted},
		{"policy", testPolicy},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, b) }) {
			return
		}
	}
	b.Still()
	stop()
	b.Asked()
	b.reconcile()
	b.Still()
	if writes := slices.DeleteFunc(b.Asked(), func(r string) bool {
		return strings.HasPrefix(r, "GET")
	}); len(writes) > 0 {
		t.Errorf("a restart writes %q", writes)
	}
}

func (b *bench) kubectl(args ...string) {
	b.Helper()
	if out, err := b.cluster.Kubectl(b.Context(), args...); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

func (b *bench) reconcile() (stop func()) {
	b.Helper()
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := persistentpodstate.New(c, persistentpodstate.Options{})
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
}

func (b *bench) create(o client.Object) {
	b.Helper()
	if err := b.Client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

func merge(body string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(body)) }

func (b *bench) patch(o client.Object, body string) {
	b.Helper()
	if err := b.Client.Patch(b.Context(), o, merge(body)); err != nil {
		b.Fatal(err)
	}
}

// set creates a StatefulSet. No controller creates its pods.
func (b *bench) set(name string, replicas int32, annotations map[string]string) *appsv1.StatefulSet {
	b.Helper()
	labels := map[string]string{"app": name}
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, Annotations: annotations}}
	s.Spec.Replicas, s.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	s.Spec.Template.Labels = labels
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "m"}}
	b.create(s)
	return s
}

// untyped is a workload of a kind with a spec.
func (b *bench) untyped(kind schema.GroupVersionKind, name, spec string) *unstructured.Unstructured {
	b.Helper()
	set := &unstructured.Unstructured{Object: map[string]any{}}
	var content any
	if err := utiljson.Unmarshal([]byte(spec), &content); err != nil {
		b.Fatal(err)
	}
	set.Object["spec"] = content
	set.SetGroupVersionKind(kind)
	set.SetNamespace(b.Namespace)
	set.SetName(name)
	return set
}

// run creates a pod of an owner that is ready on a node.
func (b *bench) run(owner client.Object, kind schema.GroupVersionKind, ordinal int32, node string) *corev1.Pod {
	b.Helper()
	p := b.Pod(ordinals.Name(owner.GetName(), ordinal), func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	})
	b.Status(p, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	return p
}

// state creates a PersistentPodState with a required zone.
func (b *bench) state(kind schema.GroupVersionKind, target string) *podstate.State {
	b.Helper()
	version, name := kind.ToAPIVersionAndKind()
	s := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: target}}
	s.Spec.TargetReference = v1beta1.TargetReference{APIVersion: version, Kind: name, Name: target}
	s.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{zone}}
	b.create(s)
	return s
}

// records waits until the records of a PersistentPodState are those, as pod:node.
func (b *bench) records(name, want string) *podstate.State {
	b.Helper()
	s := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	b.Until(func() error {
		if err := b.Look(s); err != nil {
			return err
		}
		got := map[string]string{}
		for pod, r := range s.Status.PodStates {
			got[pod] = r.NodeName
		}
		if fmt.Sprint(got) != "map["+want+"]" || s.Status.ObservedGeneration != s.Generation {
			return fmt.Errorf("the status is %+v", s.Status)
		}
		return nil
	})
	return s
}

// testGenerated: the annotations of a StatefulSet create, change and delete a PersistentPodState.
func testGenerated(_ *testing.T, b *bench) {
	set := b.set("auto", 1, map[string]string{
		v1beta1.AnnotationAutoGeneratePersistentPodState: "true", v1beta1.AnnotationRequiredPersistentTopology: zone,
	})
	made := b.records("auto", "")
	if ref := metav1.GetControllerOf(made); ref == nil || ref.UID != set.UID || ref.BlockOwnerDeletion != nil ||
		made.Spec.RequiredPersistentTopology.Keys[0] != zone {
		b.Errorf("generated %+v", made)
	}
	b.patch(set, `{"metadata":{"annotations":{"kruise.io/preferred-persistent-topology":"kubernetes.io/hostname"}}}`)
	b.Until(func() error {
		if err := b.Look(made); err != nil {
			return err
		}
		if p := made.Spec.PreferredPersistentTopology; len(p) != 1 || p[0].Weight != 100 {
			return fmt.Errorf("the spec is %+v", made.Spec)
		}
		return nil
	})
	b.patch(set, `{"metadata":{"annotations":{"kruise.io/auto-generate-persistent-pod-state":null}}}`)
	b.gone(made)
}

func (b *bench) gone(o client.Object) {
	b.Helper()
	b.Until(func() error {
		if err := b.Look(o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is there: %w", o.GetName(), err)
		}
		return nil
	})
}

// testPods: pods that become ready together cost one write, and a replaced pod on another node one more.
func testPods(t *testing.T, b *bench) {
	set := b.set("db", 3, nil)
	b.state(native(), "db")
	b.records("db", "")
	b.Still()
	b.Asked()
	for i := range int32(3) {
		b.run(set, native(), i, "n1")
	}
	b.records("db", "db-0:n1 db-1:n1 db-2:n1")
	b.Still()
	if writes := requests.About(b.Asked(), "PATCH"); len(writes) > 2 || len(writes) == 0 {
		t.Errorf("three pods cost %q", writes)
	}
	b.Gone(b.pod("db-1"))
	b.run(set, native(), 1, "n2")
	b.records("db", "db-0:n1 db-1:n2 db-2:n1")
	b.patch(set, `{"spec":{"replicas":2}}`)
	b.Still()
	b.records("db", "db-0:n1 db-1:n2 db-2:n1")
	b.Gone(b.pod("db-2"))
	b.records("db", "db-0:n1 db-1:n2")
}

func (b *bench) pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
}

// testNodes: the condition when the last node of a zone leaves. The story "released" has what follows.
func testNodes(t *testing.T, b *bench) {
	n3 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3", Labels: map[string]string{zone: "c", host: "n3"}}}
	b.create(n3)
	set := b.set("lost", 1, nil)
	s := b.state(native(), "lost")
	b.run(set, native(), 0, "n3")
	b.records("lost", "lost-0:n3")
	b.Gone(n3)
	b.Until(func() error {
		if err := b.Look(s); err != nil {
			return err
		}
		if len(s.Status.Conditions) != 1 || s.Status.Conditions[0].Status != metav1.ConditionFalse {
			return fmt.Errorf("the status is %+v", s.Status)
		}
		return nil
	})
	if s.Status.PodStates["lost-0"].MissingSince == nil {
		t.Errorf("the record is %+v", s.Status.PodStates["lost-0"])
	}
}

// testWhiteList: a kind is followed from the moment that the ConfigMap lists it.
func testWhiteList(_ *testing.T, b *bench) {
	b.kubectl("apply", "--server-side", "-f", "testdata/gameserverset.yaml")
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "GameServerSet"}
	set := b.untyped(kind, "game", `{"replicas":1}`)
	set.SetAnnotations(map[string]string{
		v1beta1.AnnotationAutoGeneratePersistentPodState: "true", v1beta1.AnnotationPreferredPersistentTopology: host,
	})
	b.Until(func() error { return b.Client.Create(b.Context(), set) }) // the definition takes a moment
	b.run(set, kind, 0, "n2")
	b.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-configuration"},
		Data: map[string]string{kruise.PersistentPodStateWhiteListKey: `{"workloads":[
			{"Group":"example.com","Version":"v1","Kind":"GameServerSet"}]}`},
	})
	b.records("game", "game-0:n2")
}

// testDeleted: the records of a user's object are dropped with the workload, and another StatefulSet of the name starts
// without records.
func testDeleted(_ *testing.T, b *bench) {
	b.Gone(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "db"}})
	b.records("db", "")
}

// testPolicy: the policy in the place of the webhook rejects no more than the webhook does.
func testPolicy(t *testing.T, b *bench) {
	b.kubectl("apply", "-f", "../../config/webhook/persistentpodstate-policy.yaml")
	try := func(change func(*podstate.State)) error {
		s := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "try"}}
		s.Spec.TargetReference = v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "try"}
		s.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{zone}}
		change(s)
		return b.Client.Create(b.Context(), s, client.DryRunAll)
	}
	weight := func(w int32) func(*podstate.State) {
		return func(s *podstate.State) {
			s.Spec.PreferredPersistentTopology = []v1beta1.PreferredTopologyTerm{{
				Weight: w, Preference: v1beta1.NodeTopologyTerm{Keys: []string{host}},
			}}
		}
	}
	nothing := func(s *podstate.State) { s.Spec.RequiredPersistentTopology = nil }
	b.Until(func() error {
		if try(nothing) == nil {
			return fmt.Errorf("the policy does not decide yet")
		}
		return nil
	})
	for name, c := range map[string]struct {
		change func(*podstate.State)
		bad    bool
	}{
		"good": {func(*podstate.State) {}, false}, "nothing": {nothing, true}, "a weight": {weight(100), false},
		"no weight": {weight(0), true}, "too much": {weight(101), true},
		"no name": {func(s *podstate.State) { s.Spec.TargetReference.Name = "" }, true},
	} {
		if err := try(c.change); (err != nil) != c.bad ||
			err != nil && !strings.Contains(err.Error(), "kruisekit-persistentpodstate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := &podstate.State{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "lost"}}
	for change, good := range map[string]bool{
		`{"metadata":{"labels":{"a":"b"}}}`:                            true,
		`{"spec":{"targetRef":{"name":"other"}}}`:                      false,
		`{"spec":{"requiredPersistentTopology":null}}`:                 false,
		`{"spec":{"persistentPodStateRetentionPolicy":"WhenDeleted"}}`: true,
	} {
		if err := b.Client.Patch(b.Context(), s.DeepCopy(), merge(change), client.DryRunAll); (err == nil) != good {
			t.Errorf("%s: %v", change, err)
		}
	}
}
