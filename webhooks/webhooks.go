package webhooks

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// Options of AddToManager. The zero value adds all webhooks as the reference has them.
type Options struct{}

// The names of the generated configurations:
//
// +kubebuilder:webhookconfiguration:mutating=true,name=kruise-mutating-webhook-configuration
// +kubebuilder:webhookconfiguration:mutating=false,name=kruise-validating-webhook-configuration

// list has all webhooks. To add one, add its options to Options and a line here.
func list() []entry {
	return []entry{
		{"conversion", addConversion},
	}
}

// entry is a webhook in the list.
type entry struct {
	name string
	add  func(mgr ctrl.Manager, o Options) error
}

// AddToManager adds all webhooks. It must come before the manager starts.
func AddToManager(mgr ctrl.Manager, o Options) error {
	for _, e := range list() {
		if err := e.add(mgr, o); err != nil {
			return fmt.Errorf("add webhook %s: %w", e.name, err)
		}
	}
	return nil
}

func addConversion(mgr ctrl.Manager, _ Options) error {
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	return nil
}
