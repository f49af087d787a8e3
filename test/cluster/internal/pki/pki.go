package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
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
	pem  []byte
	pair *tls.Certificate // nil until the authority has signed its own certificate
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
	a := &Authority{dir: dir}
	own, err := a.sign("ca", &x509.Certificate{
		Subject: pkix.Name{CommonName: "kruisekit-test-cluster"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(own.Cert, own.Key)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	a.File, a.pem, a.pair = own.CertFile, own.Cert, &pair
	return a, nil
}

// Serving makes a server's certificate for the given names and addresses.
func (a *Authority) Serving(name string, hosts ...string) (Pair, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
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
	return a.sign(file, &x509.Certificate{
		Subject:  pkix.Name{CommonName: user, Organization: groups},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Kubeconfig is the content of a kubeconfig for the server and the user of the client certificate, with all in it.
func (a *Authority) Kubeconfig(server string, client Pair) []byte {
	data := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: kruisekit
contexts: [{name: kruisekit, context: {cluster: kruisekit, user: kruisekit}}]
clusters: [{name: kruisekit, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: kruisekit, user: {client-certificate-data: %s, client-key-data: %s}}]
`, server, data(a.pem), data(client.Cert), data(client.Key))
}

// sign completes a certificate, with a key of its own.
func (a *Authority) sign(name string, template *x509.Certificate) (pair Pair, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make certificate %s: %w", name, err)
		}
	}()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return pair, err
	}
	template.NotBefore = time.Now().Add(-time.Hour) // clocks may be set back under a test
	template.NotAfter = time.Now().Add(lifetime)
	parent, signer := template, any(key)
	if a.pair != nil {
		parent, signer = a.pair.Leaf, a.pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return pair, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair, err
	}
	pair = Pair{
		Cert: encode("CERTIFICATE", der), CertFile: filepath.Join(a.dir, name+".crt"),
		Key: encode("PRIVATE KEY", keyDER), KeyFile: filepath.Join(a.dir, name+".key"),
	}
	if err := os.WriteFile(pair.CertFile, pair.Cert, 0o600); err != nil {
		return pair, err
	}
	return pair, os.WriteFile(pair.KeyFile, pair.Key, 0o600)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
