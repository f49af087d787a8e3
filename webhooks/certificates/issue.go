package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	authorityName = "webhook-cert-ca"
	authorityLife = 10 * year
	// keyBits of the CA's RSA key, a kind that every reader of the Secret can use: the reference does.
	keyBits = 2048
	// backdate is how far the clock of an API server may be behind.
	backdate = time.Hour
)

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(now time.Time) (pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: authorityName},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return pair{}, fmt.Errorf("make key: %w", err)
	}
	return issue(template, key, pair{cert: template, key: key})
}

// serving makes a certificate of the authority. The first name is the one that API servers ask for. Its key is of a
// kind that costs little at each connection.
func (a pair) serving(names []string, now time.Time, life time.Duration) (pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: names[0]},
		DNSNames:              names,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(life),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if len(names[0]) > 64 {
		template.Subject.CommonName = "" // longer ones are not valid, and clients ignore it where there are DNSNames
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make key: %w", err)
	}
	return issue(template, key, a)
}

// issue has a template for a key signed.
func issue(template *x509.Certificate, key crypto.Signer, authority pair) (pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, fmt.Errorf("make serial number: %w", err)
	}
	template.SerialNumber = serial
	raw, err := x509.CreateCertificate(rand.Reader, template, authority.cert, key.Public(), authority.key)
	if err != nil {
		return pair{}, fmt.Errorf("make certificate: %w", err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		return pair{}, fmt.Errorf("parse made certificate: %w", err)
	}
	return pair{cert: made, key: key}, nil
}

// encode returns a pair as files, the certificate together with others. The key is in the oldest form of its kind,
// which every reader knows.
func (a pair) encode(others ...*x509.Certificate) (certs, key []byte, err error) {
	if key, err = keyutil.MarshalPrivateKeyToPEM(a.key); err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	if certs, err = cert.EncodeCertificates(append([]*x509.Certificate{a.cert}, others...)...); err != nil {
		return nil, nil, fmt.Errorf("encode certificates: %w", err)
	}
	return certs, key, nil
}

// decode returns the certificates in a PEM file; none where one of them is malformed, as API servers have it.
func decode(data []byte) []*x509.Certificate {
	all, err := cert.ParseCertsPEM(data)
	if err != nil {
		return nil
	}
	return all
}

func pool(certs []*x509.Certificate) *x509.CertPool {
	all := x509.NewCertPool()
	for _, c := range certs {
		all.AddCert(c)
	}
	return all
}

// parsePair reads a certificate with its key; further certificates are left out.
func parsePair(certs, key []byte) (pair, error) {
	both, err := tls.X509KeyPair(certs, key)
	if err != nil {
		return pair{}, fmt.Errorf("read key pair: %w", err)
	}
	signer, ok := both.PrivateKey.(crypto.Signer)
	if !ok || both.Leaf == nil {
		return pair{}, errors.New("read key pair: the key cannot sign")
	}
	return pair{cert: both.Leaf, key: signer}, nil
}

// verify says whether an API server that trusts the roots accepts the certificates for a name at a time.
func verify(chain []*x509.Certificate, roots []*x509.Certificate, name string, at time.Time) error {
	if len(chain) == 0 {
		return errors.New("there is no certificate")
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		DNSName: name, Roots: pool(roots), Intermediates: pool(chain[1:]), CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}
