package serving

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const defaultConnections = 1024

// Options of a Server. The zero value has the default limits and answers every client.
type Options struct {
	// Host and Port to listen on. Default all addresses, port 9443.
	Host string
	Port int
	// TLSOpts change the TLS configuration; one of them must set GetCertificate.
	TLSOpts []func(*tls.Config)
	// Limits of clients.
	Limits Limits
	// ClientCA has signed the certificates of API servers. Nil accepts requests without a certificate.
	ClientCA *x509.CertPool
	// ClientNames are the common names in their certificates. Empty is any name that the CA has signed.
	ClientNames []string
	// OpenPaths need no certificate, such as that of a health check, and that of conversions, where API servers show none.
	OpenPaths []string
	// Registerer of the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Limits bound what clients can cost. Zero is the default of a field.
type Limits struct {
	// Body is the largest body in bytes. An API server sends two objects of at most 3 MiB each, and little else. Default 7
	// MiB.
	Body int64
	// Memory is what all requests may take together, by an estimate from their bodies. A quarter of it is for bodies that
	// arrive or wait, the rest for requests that run. Default 512 MiB, within which a manager with a limit of 1 GiB
	// survives any client.
	Memory int64
	// Wait is how long a request waits for memory. Default 8 seconds: an API server waits 10 seconds for most answers.
	Wait time.Duration
	// Connections is how many may be open. Default 1024.
	Connections int
	// PerAddress is how many connections of one client may be open. Default a quarter of all.
	PerAddress int
	// Read is how long a request may take to arrive. Default 10 seconds, which is what API servers wait for an answer.
	Read time.Duration
	// Answer is how long a request may take in all. Default 35 seconds: an API server waits at most 30 seconds.
	Answer time.Duration
}

func (o Options) withDefaults() Options {
	o.Port = cmp.Or(o.Port, 9443)
	l := &o.Limits
	l.Body, l.Memory, l.Wait = cmp.Or(l.Body, 7<<20), cmp.Or(l.Memory, 512<<20), cmp.Or(l.Wait, 8*time.Second)
	l.Connections = cmp.Or(l.Connections, defaultConnections)
	l.PerAddress = cmp.Or(l.PerAddress, max(1, l.Connections/4))
	l.Read, l.Answer = cmp.Or(l.Read, 10*time.Second), cmp.Or(l.Answer, 35*time.Second)
	return o
}

func (o Options) validate() error {
	l := o.Limits
	var all []error
	if l.Connections < 1 || l.PerAddress < 1 || l.Read <= 0 || l.Answer <= 0 || l.Wait <= 0 {
		all = append(all, errors.New("limits must be positive"))
	}
	if l.Body < 1 || l.Body > l.Memory/8 {
		const text = "the limit of a body, %d bytes, must be more than 0 and at most an eighth of that of the memory, %d"
		all = append(all, fmt.Errorf(text, l.Body, l.Memory))
	}
	if len(o.ClientNames) > 0 && o.ClientCA == nil {
		all = append(all, errors.New("names of clients need a CA"))
	}
	return errors.Join(all...)
}
