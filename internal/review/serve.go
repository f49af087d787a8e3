package review

import (
	"errors"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// reserve is the time that an answer needs to reach the API server.
const reserve = 500 * time.Millisecond

// Within returns how long a review may take: less than the API server waits, which a request says.
func Within(r *http.Request, otherwise time.Duration) time.Duration {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return otherwise
	}
	return max(timeout-reserve, timeout/2)
}

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
