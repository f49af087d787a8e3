package serving

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// connectionsByDefault of a listener.
const connectionsByDefault = 1024

// Options of a Server. The zero value has the default limits and answers every client.
type Options struct {
	// Host and Port to listen on. Default all addresses, port 9443.
	Host string
	Port int
	// TLSOpts change the TLS configuration; one of them must set GetCertificate.
	TLSOpts []func(*tls.Config)
	// Limits of clients.
	Limits Limits
	// Clients are those that are answered.
	Clients Clients
	// Registerer of the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Limits bound what clients can cost. Zero is the default of a field.
type Limits struct {
	// Body is the largest body in bytes. An API server sends two objects of at most 3 MiB each, and little else. Default 7
	// MiB.
	Body int64
	// Memory is what all requests may hold together, by an estimate from their bodies: three times the bytes, and what
	// the decoded objects and lists take. A quarter of it is kept for small requests. Reviews of one namespace from one
	// client run in a sixteenth, beyond which they wait for each other, and a single review may take three eighths.
	// Default 512 MiB, within which a manager with a limit of 1 GiB survives any client.
	Memory int64
	// Requests is how many may be in progress, of which one namespace from one client runs a sixteenth. Default 2048.
	Requests int
	// Wait is how long a review waits for others of its namespace. An API server whose time is over before cancels the
	// review. Default 8 seconds: an API server waits 10 seconds for most answers.
	Wait time.Duration
	// Connections is how many may be open, half of them by known clients at least. Default 1024.
	Connections int
	// Read is how long a request may take to arrive. Default 10 seconds, which is what API servers wait for an answer.
	Read time.Duration
	// Answer is how long a request may take in all. Default 35 seconds: an API server waits at most 30 seconds.
	Answer time.Duration
}

// Clients are those that are answered. The zero value answers all.
type Clients struct {
	// CA has signed the certificates of API servers. Nil accepts requests without a certificate.
	CA *x509.CertPool
	// Names are the common names in their certificates. Empty is any name that the CA has signed.
	Names []string
	// Check returns what is known of the client at an address. Each verdict is used for a minute. A client that was
	// answered within ten minutes waits for the next one at most a quarter of a second. While Check fails, its client is
	// answered. Nil answers all addresses.
	Check func(ctx context.Context, address netip.Addr) (Verdict, error)
	// Known reports, without waiting, whether an address is that of an API server or of a node. Such a client, one that
	// Check knows, one that has shown a certificate and the loopback address have half of the connections to
	// themselves. Nil knows no address.
	Known func(ctx context.Context, address netip.Addr) bool
	// Settle is how long a client of which nothing is known waits. Default 5 seconds.
	Settle time.Duration
	// Prompt are prefixes of paths at which a client waits for a check at most a quarter of a second, such as those of
	// pods: an API server that waits in vain creates the pod without what the webhook adds.
	Prompt []string
	// Public are paths that every client may call, such as that of a health check.
	Public []string
	// Bare are paths without a certificate, such as that of conversions: an API server shows no certificate there.
	Bare []string
}

func (o Options) withDefaults() Options {
	o.Port = cmp.Or(o.Port, 9443)
	o.Clients.Settle = cmp.Or(o.Clients.Settle, 5*time.Second)
	l := &o.Limits
	l.Body, l.Memory = cmp.Or(l.Body, 7<<20), cmp.Or(l.Memory, 512<<20)
	l.Requests, l.Connections = cmp.Or(l.Requests, 2048), cmp.Or(l.Connections, connectionsByDefault)
	l.Wait = cmp.Or(l.Wait, 8*time.Second)
	l.Read, l.Answer = cmp.Or(l.Read, 10*time.Second), cmp.Or(l.Answer, 35*time.Second)
	return o
}

func (o Options) validate() error {
	l := o.Limits
	var all []error
	if l.Requests < 2 || l.Connections < 2 || l.Read <= 0 || l.Answer <= 0 || l.Wait <= 0 {
		all = append(all, errors.New("limits must be positive, and at least 2 of requests and connections"))
	}
	if l.Body < 1 || l.Body > l.Memory/8 {
		const text = "the limit of a body, %d bytes, must be more than 0 and at most an eighth of that of the memory, %d"
		all = append(all, fmt.Errorf(text, l.Body, l.Memory))
	}
	if len(o.Clients.Names) > 0 && o.Clients.CA == nil {
		all = append(all, errors.New("names of clients need a CA"))
	}
	return errors.Join(all...)
}
