package process

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/webhooks"
)

// assembled is everything that gates can change in the manager.
type assembled struct {
	Reconcilers controllers.Options
	Webhooks    webhooks.Options
	Certs       bool
	Asks        bool
}

func assemble(t *testing.T, list string) assembled {
	t.Helper()
	o := optionsOf(t, "--feature-gates="+list)
	a := assembled{
		Reconcilers: reconcilers(o, resizing{}), Webhooks: admission(o.Gates),
		Certs: certificateOptions(o).External, Asks: o.Gates.On(gates.PodUnavailableBudgetUpdateGate),
	}
	a.Reconcilers.Controller = nil // a function
	return a
}

// Every gate of the reference changes what the manager is assembled from, or is listed with the reason why it does not.
// Gates from which others follow are no exception: what follows is compared too.
func TestEveryGateCounts(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	compare := cmp.Options{
		cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.Comparer(func(a, b prometheus.Registerer) bool { return a == b }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() != nil && p.Last().Type().Kind() == reflect.Func },
			cmp.Ignore()),
	}
	for _, gate := range gates.All() {
		t.Run(string(gate), func(t *testing.T) {
			flipped := fmt.Sprintf("%s=%t", gate, !gates.Default().On(gate))
			// A part of deletion protection counts beside its whole.
			base := ""
			if gate == gates.DeletionProtectionForCRDCascadingGate {
				base = "ResourcesDeletionProtection=true,"
			}
			same := cmp.Equal(assemble(t, base), assemble(t, base+flipped), compare)
			why, listed := inert()[gate]
			if same != listed {
				t.Errorf("%s changes something: %t; listed as without effect: %t %q", flipped, !same, listed, why)
			}
			if listed && !strings.Contains(string(readme), "`"+string(gate)+"`") {
				t.Errorf("examples/kruise-manager/README.md does not say that %s has no effect", gate)
			}
		})
	}
}
