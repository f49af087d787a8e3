//go:build envtest

package pod_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

// A follower injects as the leader does, also sets that are pinned to a revision.
func testFollower(t *testing.T, g *ground) {
	g.lead(t)
	g.stop()
	g.follows = true
	g.serve(t)
	defer func() {
		g.stop()
		g.follows = false
		g.serve(t)
	}()
	held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: pod.DefaultNamespace, Name: lease}}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
		t.Fatal(err)
	}
	holder := ptr.Deref(held.Spec.HolderIdentity, "")

	g.until(t, "the follower is not ready", func(ctx context.Context) error {
		return g.webhook.Ready((&http.Request{}).WithContext(ctx))
	})
	g.history(t, "a", "v1")
	g.have(t, concerned{}, newSet(t, "a", logs[:len(logs)-1]+`, injectionStrategy: {revision: {customVersion: v1}}}`))
	p := newPod(t, "default", plain)
	if err := g.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	same(t, "the follower injects the pinned revision", []string{"main=m", "log=log:old"}, describeTyped(t, p))

	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
		t.Fatal(err)
	}
	if now := ptr.Deref(held.Spec.HolderIdentity, ""); now != holder {
		t.Errorf("%q leads now instead of %q: the pod was not answered by a follower", now, holder)
	}
}
