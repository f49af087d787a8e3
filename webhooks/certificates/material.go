package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// material is what a Secret holds, ready for use. It is never changed.
type material struct {
	// bundle is what API servers trust.
	bundle      []byte
	authorities []*x509.Certificate
	roots       *x509.CertPool
	serving     *tls.Certificate
	chain       []*x509.Certificate
}

// parse reads the Secret's data: ours, or that of another program.
func parse(data map[string][]byte, external bool) (*material, error) {
	bundle := data[caCertName]
	if external && len(data[externalCAName]) > 0 {
		bundle = data[externalCAName]
	}
	serving, err := tls.X509KeyPair(data[tlsCertName], data[tlsKeyName])
	if err != nil {
		return nil, fmt.Errorf("read %s and %s: %w", tlsCertName, tlsKeyName, err)
	}
	m := &material{bundle: bundle, authorities: decode(bundle), serving: &serving, chain: decode(data[tlsCertName])}
	m.roots = pool(m.authorities)
	return m, nil
}

// same reports whether two materials come from the same data.
func (m *material) same(other *material) bool {
	return bytes.Equal(m.bundle, other.bundle) && bytes.Equal(m.chain[0].Raw, other.chain[0].Raw)
}

// trusts reports whether a client that trusts this material accepts the certificate of another.
func (m *material) trusts(other *material, in input) bool {
	return verify(other.chain, m.authorities, in.names[0], in.now) == nil
}
