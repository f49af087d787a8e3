package certificates

import (
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

const (
	// Keys of the Secret, those of the reference.
	caKeyName, caCertName = "ca-key.pem", "ca-cert.pem"
	keyName, certName     = "key.pem", "cert.pem"
	tlsKeyName            = "tls.key"
	tlsCertName           = "tls.crt"

	// leastAuthorityLife is what a CA must have left to sign once more.
	leastAuthorityLife = year
	// mostAuthorities are trusted at a time: the one that signs, and before it.
	mostAuthorities = 3
	// overlap is how long a replaced CA stays trusted.
	overlap = time.Hour
)

// input is all that decides what is in the Secret.
type input struct {
	// data of the Secret, if there is one.
	data map[string][]byte
	// trusted is the bundle that this replica has written for API servers, for when the Secret is gone.
	trusted []*x509.Certificate
	// names of the server.
	names       []string
	now         time.Time
	renewBefore time.Duration
}

// plan returns what the Secret should hold, and why that is not what it holds. Without a reason it may stay as it is.
func plan(in input) (data map[string][]byte, reason string, err error) {
	bundle := decode(in.data[caCertName])
	invalid := in.verify(bundle)
	data = maps.Clone(in.data)
	if invalid == nil {
		if !in.prunable(bundle) {
			return in.data, "", nil
		}
		data[caCertName], err = cert.EncodeCertificates(bundle[0])
		return data, "the previous CA is no longer needed", err
	}
	if len(in.data) == 0 {
		invalid, data = errors.New("there is none yet"), map[string][]byte{}
	}
	authority, err := in.authority(bundle)
	if err != nil {
		if authority, err = newAuthority(in.now); err != nil {
			return nil, "", err
		}
	}
	made, err := authority.serving(in.names, in.now, in.life())
	if err != nil {
		return nil, "", err
	}
	if data[caCertName], data[caKeyName], err = authority.encode(in.others(authority.cert, bundle)...); err != nil {
		return nil, "", err
	}
	if data[certName], data[keyName], err = made.encode(); err != nil {
		return nil, "", err
	}
	data[tlsCertName], data[tlsKeyName] = data[certName], data[keyName]
	return data, invalid.Error(), nil
}

// others are the CAs that API servers trust besides the one that signs now: those that signed what replicas may still
// serve.
func (in input) others(now *x509.Certificate, before []*x509.Certificate) []*x509.Certificate {
	if in.aged(now) && !in.servedBy(slices.DeleteFunc(slices.Clone(before), now.Equal)) {
		return nil
	}
	var all []*x509.Certificate
	for _, c := range slices.Concat(before, in.trusted) {
		if in.now.Before(c.NotAfter) && !c.Equal(now) && !slices.ContainsFunc(all, c.Equal) {
			all = append(all, c)
		}
	}
	return all[:min(len(all), mostAuthorities-1)]
}

// life of a certificate that is made now.
func (in input) life() time.Duration { return 2 * in.renewBefore }

// verify says why the certificate of the Secret has to be replaced. That it is valid already is not asked: whose clock
// is behind must not replace what the others use.
func (in input) verify(bundle []*x509.Certificate) error {
	if len(bundle) == 0 {
		return errors.New("there is no CA")
	}
	for _, twins := range [][2]string{{tlsCertName, tlsKeyName}, {certName, keyName}} {
		if _, err := parsePair(in.data[twins[0]], in.data[twins[1]]); err != nil {
			return err
		}
		if err := verify(decode(in.data[twins[0]]), bundle, in.names[0], in.now.Add(in.renewBefore)); err != nil {
			return fmt.Errorf("%s before the end: %w", in.renewBefore, err)
		}
	}
	return nil
}

// authority is the CA of the Secret, if it can sign once more.
func (in input) authority(bundle []*x509.Certificate) (pair, error) {
	a, err := parsePair(in.data[caCertName], in.data[caKeyName])
	if err != nil {
		return pair{}, err
	}
	if _, known := a.key.(*rsa.PrivateKey); !known || !a.cert.IsCA || len(bundle) == 0 {
		return pair{}, errors.New("it is no CA of ours")
	}
	if left := max(leastAuthorityLife, in.life()); in.now.Add(left).After(a.cert.NotAfter) ||
		in.now.Before(a.cert.NotBefore) {
		return pair{}, errors.New("the CA ends too early")
	}
	return a, nil
}

// prunable reports whether all but the first CA can go: every replica has had the time to serve a certificate of the
// first.
func (in input) prunable(bundle []*x509.Certificate) bool {
	return len(bundle) > 1 && in.aged(bundle[0]) && in.servedBy(bundle[:1])
}

// aged reports whether a CA was made long enough ago for all replicas to know it.
func (in input) aged(authority *x509.Certificate) bool {
	return !in.now.Before(authority.NotBefore.Add(backdate + overlap))
}

// servedBy reports whether the certificate of the Secret is valid now for clients that trust these.
func (in input) servedBy(authorities []*x509.Certificate) bool {
	return verify(decode(in.data[tlsCertName]), authorities, in.names[0], in.now) == nil
}
