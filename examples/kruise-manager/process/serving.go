package process

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/webhooks/certificates"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/pod"
	"github.com/kruisekit/kruisekit/webhooks/serving"
)

// webhookServer serves the webhooks within limits, to clients that can be API servers.
func webhookServer(
	all options.Options, addresses *serving.Addresses, certificate func(*tls.Config),
) (*serving.Server, error) {
	o := all.Webhook
	clients := serving.Clients{
		Names: o.ClientNames, Public: []string{certificates.HealthPath}, Bare: []string{conversion.Path},
		Prompt: []string{pod.Path},
	}
	var err error
	if clients.CA, err = authorities(o.ClientCA); err != nil {
		return nil, err
	}
	clients.Known = addresses.Known
	if !o.AnswerPods {
		clients.Check = addresses.Check
	}
	return serving.New(serving.Options{
		Host: "0.0.0.0", Port: o.Port, TLSOpts: []func(*tls.Config){certificate}, Clients: clients,
		Registerer: metrics.Registry, Limits: serving.Limits{Memory: webhookMemory(all.MemoryLimit)},
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

// clientAddresses reads live what is known of clients.
func clientAddresses(rc *rest.Config, o options.Webhook) (*serving.Addresses, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	live, err := runtimeclient.New(rc, runtimeclient.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return serving.Pods(live, metav1.NamespaceSystem, o.Namespace), nil
}
