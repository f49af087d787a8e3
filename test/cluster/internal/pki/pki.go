package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is longer than any test cluster lives.
const lifetime = 30 * 24 * time.Hour

// Authority signs the certificates of one cluster.
type Authority struct {
	// File is where the certificate of the authority is.
	File string

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// Pair is a certificate with its key: contents and files.
type Pair struct {
	Cert, Key         []byte
	CertFile, KeyFile string
}

// NewAuthority makes an authority that keeps its files in dir.
func NewAuthority(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	template, err := newTemplate("kruisekit-test-cluster", nil)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	a := &Authority{File: filepath.Join(dir, "ca.crt"), dir: dir, cert: cert, key: key, pem: encode("CERTIFICATE", der)}
	return a, write(a.File, a.pem)
}

// Serving makes a server's certificate for the given names and addresses.
func (a *Authority) Serving(name string, hosts ...string) (Pair, error) {
	template, err := newTemplate(name, nil)
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.sign(name, template)
}

// Client makes the certificate by which a user in the given groups authenticates. The user's name may differ from the
// name of the files.
func (a *Authority) Client(file, user string, groups ...string) (Pair, error) {
	template, err := newTemplate(user, groups)
	if err != nil {
		return Pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(file, template)
}

// SigningKey makes a key pair for service account tokens.
func (a *Authority) SigningKey(name string) (private, public string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("make key %s: %w", name, err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", fmt.Errorf("make key %s: %w", name, err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", "", fmt.Errorf("make key %s: %w", name, err)
	}
	private, public = filepath.Join(a.dir, name+".key"), filepath.Join(a.dir, name+".pub")
	if err := write(private, encode("PRIVATE KEY", privateDER)); err != nil {
		return "", "", err
	}
	return private, public, write(public, encode("PUBLIC KEY", publicDER))
}

// Kubeconfig is the content of a kubeconfig for the server and the user of the client certificate, with all in it.
func (a *Authority) Kubeconfig(server string, client Pair) []byte {
	data := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: kruisekit
contexts:
- name: kruisekit
  context: {cluster: kruisekit, user: kruisekit}
clusters:
- name: kruisekit
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: kruisekit
  user:
    client-certificate-data: %s
    client-key-data: %s
`, server, data(a.pem), data(client.Cert), data(client.Key))
}

// Pool trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *Authority) sign(name string, template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("sign %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign %s: %w", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign %s: %w", name, err)
	}
	pair := Pair{
		Cert: encode("CERTIFICATE", der), CertFile: filepath.Join(a.dir, name+".crt"),
		Key: encode("PRIVATE KEY", keyDER), KeyFile: filepath.Join(a.dir, name+".key"),
	}
	if err := write(pair.CertFile, pair.Cert); err != nil {
		return Pair{}, err
	}
	return pair, write(pair.KeyFile, pair.Key)
}

func newTemplate(name string, groups []string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make certificate %s: %w", name, err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    now.Add(-time.Hour), // clocks may be set back under a test
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func write(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
