//go:build envtest

package webhooks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/advancedcronjob"
	"github.com/kruisekit/kruisekit/webhooks/broadcastjob"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/daemonset"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
	"github.com/kruisekit/kruisekit/webhooks/ephemeraljob"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
	"github.com/kruisekit/kruisekit/webhooks/persistentpodstate"
	"github.com/kruisekit/kruisekit/webhooks/podprobemarker"
	"github.com/kruisekit/kruisekit/webhooks/podunavailablebudget"
	"github.com/kruisekit/kruisekit/webhooks/resourcedistribution"
	"github.com/kruisekit/kruisekit/webhooks/statefulset"
	"github.com/kruisekit/kruisekit/webhooks/uniteddeployment"
	"github.com/kruisekit/kruisekit/webhooks/workloadspread"
)

const denied = "denied the request"

// entry is a kind, and what is its own.
type entry struct {
	reviewtest.Kind

	// own are tests of what only this kind does at an API server.
	own func(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground)
	// policy are reviews of the policy, which decides as the webhook does. Nil where it is tested elsewhere.
	policy func(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground)
	// faulty are patches of specs that are stored before the policy: the policy accepts updates of something else.
	faulty []string
	// worse is a patch of the first of them that the policy rejects.
	worse string
	// ready returns an error until the policy decides. Nil for the rejection of a bad object.
	ready func(ctx context.Context, t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) error
	// closed is the code of an object whose gate is off, and text what the answer says.
	closed int32
	text   string
}

func entries() []entry {
	return append([]entry{
		advancedCronJobs(), broadcastJobs(), cloneSets(), daemonSets(), ephemeralJobs(), statefulSets(), unitedDeployments(),
		workloadSpreads(),
		recreateRequests(), podStates(), probeMarkers(), unavailableBudgets(), distributions(),
	}, imagePulls()...)
}

// noSpreads has no other WorkloadSpread.
type noSpreads struct{}

func (noSpreads) In(string) []*appsv1beta1.WorkloadSpread    { return nil }
func (noSpreads) Allowed(context.Context) []schema.GroupKind { return nil }

// serveKinds serves all kinds, or has all gates off. Objects named early come before the webhooks.
func serveKinds(off bool) reviewtest.Setup {
	return func(mgr ctrl.Manager, api client.Client) error {
		guard, err := disruption.NewGuard(mgr, disruption.GuardOptions{})
		if err != nil {
			return err
		}
		server := mgr.GetWebhookServer()
		server.Register(conversion.Path, conversion.NewHandler())
		serve := func(w kinds.Webhooks, err error) error {
			for path, handle := range w {
				server.Register(path, reviewtest.ExceptEarly(handle))
			}
			return err
		}
		at := func() time.Time { return time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC) }
		templates := kinds.Options{HostNetworkHostPorts: true}
		return errors.Join(
			serve(advancedcronjob.New(api, kinds.Options{})), serve(broadcastjob.New(api, kinds.Options{})),
			serve(cloneset.New(api, templates)),
			serve(daemonset.New(api, kinds.Options{})), serve(ephemeraljob.New(api, kinds.Options{})),
			serve(statefulset.New(api, statefulset.Options{ExpandClaims: true})),
			serve(uniteddeployment.New(api, kinds.Options{})),
			serve(workloadspread.New(noSpreads{}, api, workloadspread.Options{Off: off})),
			serve(containerrecreaterequest.New(api, containerrecreaterequest.Options{NoDaemon: off})),
			serve(persistentpodstate.New(api, persistentpodstate.Options{Namespace: "default"})),
			serve(podprobemarker.New(podprobemarker.Options{Off: off})),
			serve(podunavailablebudget.New(guard, podunavailablebudget.Options{Off: off})),
			serve(resourcedistribution.New(resourcedistribution.Options{On: !off})),
			serve(imagepull.New(imagepull.Options{Jobs: true, NoDaemon: off, Now: at})),
		)
	}
}

// TestKinds shares one API server, with the generated configuration: the webhooks of all kinds first, then the same
// with gates off, and then the policies alone, which must decide alike.
func TestKinds(t *testing.T) {
	all := entries()
	bad := cloneSets()
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{
			"advancedcronjobs", "broadcastjobs", "clonesets", "containerrecreaterequests", "daemonsets", "ephemeraljobs",
			"imagelistpulljobs",
			"imagepulljobs", "nodeimages", "persistentpodstates", "podprobemarkers", "podunavailablebudgets",
			"resourcedistributions", "statefulsets",
			"uniteddeployments", "workloadspreads",
		},
		Setup: serveKinds(false), Bad: bad.New(t, "v1beta1", "default", bad.Bad),
	})
	createNode(t, g)
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			e.Review(t, g)
			if e.own != nil {
				e.own(t, e.Kind, g)
			}
		})
	}
	reviewtest.Stored(t, g, &batchv1.JobList{}, &appsv1.StatefulSetList{})
	t.Run("Closed", func(t *testing.T) { testClosed(t, g, all) })
	t.Run("Policies", func(t *testing.T) { testPolicies(t, g, all) })
}

func testClosed(t *testing.T, g *reviewtest.Ground, all []entry) {
	var closed []*reviewtest.Closed
	for _, e := range all {
		if e.closed != 0 {
			c := &reviewtest.Closed{Kind: e.Kind, Code: e.closed, Text: e.text}
			c.Store(t, g)
			closed = append(closed, c)
		}
	}
	g.Serve(t, serveKinds(true))
	for _, c := range closed {
		t.Run(c.Kind.Name, func(t *testing.T) { c.Review(t, g) })
	}
}

// testPolicies removes the webhooks and installs the policies. What was stored in between has faults that updates may
// keep.
func testPolicies(t *testing.T, g *reviewtest.Ground, all []entry) {
	g.Withdraw(t)
	reviewtest.Until(t, "the webhooks are still asked", func(ctx context.Context) error {
		of := cloneSets()
		plain := of.New(t, "v1beta1", "default", of.Bad)
		if err := g.Client.Create(ctx, plain, client.DryRunAll); err != nil {
			return err
		}
		if reviewtest.Field(plain, "spec", "revisionHistoryLimit") != nil {
			return errors.New("there are defaults")
		}
		return nil
	})
	var policies []reviewtest.Kind
	stored := map[string][]*unstructured.Unstructured{}
	for _, e := range all {
		if e.policy == nil {
			continue
		}
		if e.Name != "ImageListPullJob" { // two kinds have one
			policies = append(policies, e.Kind)
		}
		namespace := e.Namespace(t, g)
		for _, patch := range e.faulty {
			o := e.New(t, e.Latest(), namespace, patch)
			if err := g.Client.Create(t.Context(), o); err != nil {
				t.Fatalf("%s: %v", e.Name, err)
			}
			stored[e.Name] = append(stored[e.Name], o)
		}
	}
	reviewtest.ApplyPolicies(t, g, policies...)
	for _, e := range all {
		if e.policy == nil {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			reviewtest.Until(t, "the API server does not apply the policy", func(ctx context.Context) error {
				if e.ready != nil {
					return e.ready(ctx, t, e.Kind, g)
				}
				return e.Rejects(ctx, t, g)
			})
			e.policy(t, e.Kind, g)
			for _, o := range stored[e.Name] {
				o.SetLabels(map[string]string{"touched": "true"})
				if err := g.Client.Update(t.Context(), o); err != nil {
					t.Errorf("a stored fault: %v", err)
				}
			}
			if e.worse != "" {
				worse := client.RawPatch(types.MergePatchType, []byte(`{"spec":`+e.worse+`}`))
				if err := reviewtest.Says(g.Client.Patch(t.Context(), stored[e.Name][0], worse), e.PolicyName(),
					"spec."); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
