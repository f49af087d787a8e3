//go:build envtest

package pod_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// lease is what the replicas of the test compete for.
const lease = "replicas"

// lead runs a manager that holds the lease until the test ends.
func (g *ground) lead(t *testing.T) {
	t.Helper()
	mgr, err := ctrl.NewManager(g.Config, g.elected(ctrl.Options{
		Scheme: g.scheme, Metrics: server.Options{BindAddress: "0"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("leader: %v", err)
		}
	})
	g.until(t, "the first manager is not elected", func(context.Context) error {
		select {
		case <-mgr.Elected():
			return nil
		default:
			return errors.New("not yet")
		}
	})
}

// elected are options of a manager that competes for the lease.
func (*ground) elected(o ctrl.Options) ctrl.Options {
	o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, lease, pod.DefaultNamespace
	o.LeaderElectionReleaseOnCancel = true
	return o
}

// history is a former revision of set a with an image of its own.
func (g *ground) history(t *testing.T, namespace, image string, number int64) {
	t.Helper()
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a-old", Labels: map[string]string{
			appsv1beta1.SidecarSetNameLabel: "a", appsv1beta1.SidecarSetCustomVersionLabel: "v1",
		}},
		Revision: number,
		Data:     runtime.RawExtension{Raw: fmt.Appendf(nil, `{"spec":{"containers":[{"name":"log","image":%q}]}}`, image)},
	}
	g.create(t, r)
}

func (g *ground) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (g *ground) holder(t *testing.T) string {
	t.Helper()
	held := &coordinationv1.Lease{}
	if err := g.Client.Get(t.Context(), client.ObjectKey{Namespace: pod.DefaultNamespace, Name: lease}, held); err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(held.Spec.HolderIdentity, "")
}

// A replica that does not lead answers as the leader does: by sets, of which one is pinned, by markers and by states.
// While no replica answers, the pods that may go without are created, and the others wait.
func testFollower(t *testing.T, g *ground) {
	g.lead(t)
	g.stop()
	g.follows = true
	g.serve(t)
	holder := g.holder(t)
	g.until(t, "the follower is not ready", func(ctx context.Context) error {
		return g.webhook.Ready((&http.Request{}).WithContext(ctx))
	})
	marker := newMarker(t, "game",
		`{selector: {matchLabels: {app: game}}, probes: [{name: idle, containerName: main, podConditionType: a/idle, probe: {exec: {command: [idle]}}}]}`)
	marker.Namespace = g.Namespace(t)
	g.create(t, marker)
	state := &appsv1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace(t), Name: "db"}}
	state.Spec.TargetReference = appsv1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
	state.Spec.RequiredPersistentTopology = &appsv1beta1.NodeTopologyTerm{Keys: []string{"zone"}}
	g.create(t, state)
	state.Status.PodStates = map[string]appsv1beta1.PodState{"db-0": {
		NodeName: "n1", NodeTopologyLabels: map[string]string{"zone": "a"},
	}}
	if err := g.Client.Status().Update(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	g.history(t, pod.DefaultNamespace, "log:old", 1)
	g.history(t, "default", "log:wrong", 2)
	g.have(t, concerned{Owned: true, Launch: true, More: []scope.Contribution{
		scope.Probes().Contribute(untyped(t, marker)), scope.States().Contribute(untyped(t, state)),
	}}, newSet(t, "a", logs[:len(logs)-1]+`, injectionStrategy: {revision: {customVersion: v1}}}`),
		open(newSet(t, "b", strings.ReplaceAll(logs, "web", "nice"))))

	t.Run("Pinned", func(t *testing.T) {
		p := newPod(t, "default", plain)
		if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		same(t, "the revision of the manager's namespace", []string{"main=m", "log=log:old"}, describeTyped(t, p))
	})
	t.Run("Probes", func(t *testing.T) { testFollowerProbes(t, g, marker) })
	t.Run("Place", func(t *testing.T) { testPlace(t, g, state.Namespace) })
	if now := g.holder(t); now != holder {
		t.Errorf("%q leads now instead of %q: the pods were not answered by a follower", now, holder)
	}
	g.stop()
	testDown(t, g, marker.Namespace, state.Namespace)
	g.follows = false
	g.serve(t)
	g.until(t, "a pod is not created once the webhook is back", func(ctx context.Context) error {
		return g.Client.Create(ctx, newPod(t, marker.Namespace, plain))
	})
}

// labelled is a pod of that name and label app.
func labelled(t *testing.T, namespace, app string) *corev1.Pod {
	t.Helper()
	p := newPod(t, namespace, plain)
	p.Name, p.Labels = app, map[string]string{"app": app}
	return p
}

// A pod has the probes of the markers that are there when it is created.
func testFollowerProbes(t *testing.T, g *ground, marker *v1alpha1.PodProbeMarker) {
	stamps := func(namespace, want string) {
		t.Helper()
		g.until(t, "the pod of "+namespace, func(ctx context.Context) error {
			p := labelled(t, namespace, "game")
			if err := g.Client.Create(ctx, p, client.DryRunAll); err != nil {
				return err
			}
			if got := p.Annotations["kruise.io/podprobemarker-list"]; got != want {
				return fmt.Errorf("has the probes of %q, want %q", got, want)
			}
			return nil
		})
	}
	stamps(marker.Namespace, "game")
	g.took()
	stamps("default", "")
	if calls, _ := g.took(); calls != 0 {
		t.Errorf("%d calls for a pod that no marker selects", calls)
	}
	if err := g.Client.Delete(t.Context(), marker.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	stamps(marker.Namespace, "")
	marker.ResourceVersion, marker.UID = "", ""
	g.create(t, marker)
	stamps(marker.Namespace, "game")
}

// ownedBy is a pod of the StatefulSet db or of the ReplicaSet other.
func ownedBy(t *testing.T, namespace, name, owner string) *corev1.Pod {
	t.Helper()
	p := labelled(t, namespace, owner)
	p.Name = name
	kind := map[string]string{"db": "StatefulSet", "other": "ReplicaSet"}[owner]
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: kind, Name: owner, UID: "set", Controller: ptr.To(true),
	}}
	return p
}

// A pod whose state is known is steered. Pods of ReplicaSets are never sent for that.
func testPlace(t *testing.T, g *ground, namespace string) {
	create := func(ctx context.Context, name, owner string) (map[string]string, error) {
		p := ownedBy(t, namespace, name, owner)
		err := g.Client.Create(ctx, p, client.DryRunAll)
		return p.Spec.NodeSelector, err
	}
	g.until(t, "the pod is not steered", func(ctx context.Context) error {
		selects, err := create(ctx, "db-0", "db")
		if err == nil && selects["zone"] != "a" {
			err = fmt.Errorf("it selects %v", selects)
		}
		return err
	})
	g.took()
	for name, owner := range map[string]string{"db-1": "db", "other-0": "other"} {
		if selects, err := create(t.Context(), name, owner); err != nil || selects != nil {
			t.Errorf("%s of %s: %v, %v", name, owner, selects, err)
		}
	}
	if calls, _ := g.took(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// testDown creates pods while no replica answers: those with a required topology and those of a set that must not be
// missing wait.
func testDown(t *testing.T, g *ground, marked, stated string) {
	for _, p := range []*corev1.Pod{
		labelled(t, marked, "web"), labelled(t, marked, "nice"), labelled(t, marked, "other"), labelled(t, marked, "game"),
		ownedBy(t, stated, "db-0", "db"), ownedBy(t, stated, "other-0", "other"),
	} {
		err := g.Client.Create(t.Context(), p)
		if fails := slices.Contains([]string{"web", "db-0"}, p.Name); (err != nil) != fails {
			t.Errorf("pod %s: %v", p.Name, err)
		}
	}
}
