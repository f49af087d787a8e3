package review

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Serve serves handlers at their paths on the webhook server of a manager.
func Serve(mgr ctrl.Manager, handlers map[string]admission.HandlerFunc) error {
	server := mgr.GetWebhookServer()
	if server == nil {
		return errors.New("the manager has no webhook server")
	}
	for path, handler := range handlers {
		server.Register(path, &admission.Webhook{Handler: handler})
	}
	return nil
}
