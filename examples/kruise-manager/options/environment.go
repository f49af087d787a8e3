package options

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers"
)

const (
	day         = 24 * time.Hour
	renewBefore = 180 * day
)

// variables are those of the reference that are read, or accepted.
func variables() map[string]string {
	return map[string]string{
		"POD_NAMESPACE":           "own namespace (default kruise-system)",
		"SERVICE_NAME":            "service of the webhooks (default kruise-webhook-service)",
		"SECRET_NAME":             "secret with the certificate (default kruise-webhook-certs)",
		"WEBHOOK_PORT":            "port of the webhooks (default 9876)",
		"KRUISE_DAEMON_CONFIG_NS": "namespace from which nodes read pull secrets (default kruise-daemon-config)",
		"CERTS_RENEW_BEFORE": "when a certificate is renewed: a number of days d, months m or years y (default 180d, " +
			"at most 2y)",
	}
}

// inertVariables are accepted and have no effect.
func inertVariables() map[string]string {
	return map[string]string{
		"WEBHOOK_HOST":           "API servers reach webhooks through the service",
		"WEBHOOK_CERT_DIR":       "certificates are in no file",
		"WEBHOOK_CERT_WRITER":    "certificates are in no file",
		"CUSTOM_RESOURCE_ENABLE": "choose with --controllers",
	}
}

func (p *parser) environment(getenv func(string) string) {
	or := func(name, fallback string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return fallback
	}
	w := &p.options.Webhook
	w.Namespace = or("POD_NAMESPACE", kruise.DefaultNamespace)
	w.Service = or("SERVICE_NAME", "kruise-webhook-service")
	w.Secret = or("SECRET_NAME", "kruise-webhook-certs")
	port, err := strconv.Atoi(or("WEBHOOK_PORT", "9876"))
	if err != nil {
		p.failures = append(p.failures, fmt.Errorf("WEBHOOK_PORT=%s is no number", getenv("WEBHOOK_PORT")))
		port = 1 // said once
	}
	w.Port = port
	p.options.PullSecretNamespace = getenv("KRUISE_DAEMON_CONFIG_NS")
	w.RenewBefore = renewBefore
	if v := getenv("CERTS_RENEW_BEFORE"); v != "" {
		if d, ok := period(v); ok {
			w.RenewBefore = d
		} else {
			p.note(fmt.Sprintf("CERTS_RENEW_BEFORE=%s is no period such as 90d, 6m or 1y, of at most 2y: the default is used",
				v))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inertVariables())) {
		if getenv(name) != "" {
			p.note(name + " has no effect: " + inertVariables()[name])
		}
	}
	if err := controllers.Check(split(p.controllers)); err != nil {
		p.failures = append(p.failures, fmt.Errorf("--controllers=%s: %w", p.controllers, err))
	}
}

// period reads a number of days, months of 30 days or years of 365.
func period(v string) (time.Duration, bool) {
	for suffix, unit := range map[string]time.Duration{"d": day, "m": 30 * day, "y": 365 * day} {
		number, found := strings.CutSuffix(v, suffix)
		if !found {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n <= 0 || n > int(2*365*day/unit) {
			return 0, false
		}
		return time.Duration(n) * unit, true
	}
	return 0, false
}
