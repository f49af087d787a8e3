package process

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/webhooks/certificates"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/serving"
)

// webhookServer serves the webhooks within limits.
func webhookServer(all options.Options, certificate func(*tls.Config)) (*serving.Server, error) {
	o := all.Webhook
	ca, err := authorities(o.ClientCA)
	if err != nil {
		return nil, err
	}
	return serving.New(serving.Options{
		Host: "0.0.0.0", Port: o.Port, TLSOpts: []func(*tls.Config){certificate}, Registerer: metrics.Registry,
		ClientCA: ca, ClientNames: o.ClientNames, OpenPaths: []string{certificates.HealthPath, conversion.Path},
		Limits: serving.Limits{Memory: webhookMemory(all.MemoryLimit)},
	})
}

// What webhooks may hold is a quarter of the memory of the process; the caches have the rest. Less than fewestBytes
// does not hold the largest objects, and more than mostBytes needs more requests than there may be.
const (
	ofMemory               = 4
	fewestBytes, mostBytes = 96 << 20, 1 << 30
)

// webhookMemory is what requests to the webhooks may hold by the limit of the process; 0 is the default of the server.
func webhookMemory(limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	return min(max(limit/ofMemory, fewestBytes), mostBytes)
}

// authorities are nil without a file.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // no CA is wanted
	}
	pem, err := os.ReadFile(file) //nolint:gosec // the administrator names the file
	if err != nil {
		return nil, fmt.Errorf("read the CA of API servers: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the CA of API servers: %w", errors.New(file+" has no certificate"))
	}
	return pool, nil
}
