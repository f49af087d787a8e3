//go:build envtest

package deletion_test

import (
	"path/filepath"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/kruisekit/kruisekit/config/protection"
	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
)

// exempt is a user that the options exempt.
const exempt = "administrator"

// TestAdmission shares one API server. Objects are judged by the webhooks, by no webhook that answers, and by the
// policies.
func TestAdmission(t *testing.T) {
	in := reviewtest.Input{
		Resources: []string{"clonesets", "statefulsets", "uniteddeployments"}, Setup: serve,
		BuiltIn: []string{"namespaces", "services", "customresourcedefinitions", "deployments", "replicasets", "ingresses"},
	}
	for _, k := range protection.Kinds() {
		in.Webhooks = append(in.Webhooks, config.WebhookName(k))
	}
	g := reviewtest.Start(t, in)
	all := createAll(t, g)
	t.Run("Webhooks", func(t *testing.T) { untilJudged(t, g, all, "admission webhook") })
	t.Run("Namespace", func(t *testing.T) { testNamespace(t, g) })
	t.Run("Definition", func(t *testing.T) { testDefinition(t, g) })
	t.Run("Calls", func(t *testing.T) { testCalls(t, g) })
	t.Run("Warnings", func(t *testing.T) { testWarnings(t, g) })
	t.Run("Outage", func(t *testing.T) {
		g.Stop(t)
		testOutage(t, g, all)
	})
	t.Run("Policies in an outage", func(t *testing.T) {
		apply(t, g, filepath.Join("..", "..", "config", "protection", "policies.yaml"))
		untilJudged(t, g, all, policy)
		testPrinted(t, g)
	})
	t.Run("Policies", func(t *testing.T) {
		g.Withdraw(t)
		g.Serve(t, serve) // for conversion alone
		judgeAll(t, g, all)
		testFollowing(t, g)
		testExempt(t, g, refused(all))
	})
}

func serve(mgr ctrl.Manager, api client.Client) error {
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	g, err := deletion.New(api, deletion.Options{Policy: protection.Policy{
		CountInstances: true, ExemptUsers: []string{exempt},
	}})
	if err != nil {
		return err
	}
	return g.SetupWithManager(mgr)
}

func apply(t *testing.T, g *reviewtest.Ground, file string) {
	t.Helper()
	if out, err := g.Kubectl(t.Context(), "apply", "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
