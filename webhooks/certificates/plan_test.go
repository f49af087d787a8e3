package certificates

import (
	"bytes"
	"crypto/x509"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// epoch of all tests: a certificate has no fractions of seconds.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func at(now time.Time, data map[string][]byte) input {
	return input{data: data, names: []string{"a.b.svc", "localhost"}, now: now, renewBefore: 180 * day}
}

// filled is the data of a Secret that was made at a time.
func filled(t *testing.T, now time.Time) map[string][]byte {
	t.Helper()
	data, _, err := plan(at(now, nil))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestPlan(t *testing.T) {
	made := filled(t, epoch())
	other := filled(t, epoch())
	changed := func(key string, value []byte) map[string][]byte {
		data := maps.Clone(made)
		data[key] = value
		return data
	}
	both := changed(caCertName, append(bytes.Clone(made[caCertName]), other[caCertName]...))
	cases := map[string]struct {
		why    string
		now    time.Time
		data   map[string][]byte
		reason string
		// what becomes of the CA
		first, authorities string
	}{
		"half a year on": {
			why:         "renewed by the same CA, before it ends",
			now:         epoch().Add(181 * day),
			data:        made,
			reason:      "before the end",
			first:       "same",
			authorities: "1",
		},
		"nine years on": {
			why:         "a CA that ends within a year signs no more",
			now:         epoch().Add(9*year + day),
			data:        made,
			reason:      "before the end",
			first:       "new",
			authorities: "2",
		},
		"after ten years": {
			why:         "a CA that has ended is trusted no more",
			now:         epoch().Add(10*year + day),
			data:        made,
			reason:      "before the end",
			first:       "new",
			authorities: "1",
		},
		"empty": {
			why:         "somebody may have created the Secret",
			now:         epoch(),
			data:        map[string][]byte{},
			reason:      "there is none yet",
			first:       "new",
			authorities: "1",
		},
		"no CA": {
			why:         "nobody can be told whom to trust",
			now:         epoch(),
			data:        changed(caCertName, nil),
			reason:      "there is no CA",
			first:       "new",
			authorities: "1",
		},
		"another's CA": {
			why:         "API servers would refuse",
			now:         epoch(),
			data:        changed(caCertName, other[caCertName]),
			reason:      "unknown authority",
			first:       "new",
			authorities: "2",
		},
		"key of another": {
			why:         "nobody could serve",
			now:         epoch(),
			data:        changed(tlsKeyName, other[tlsKeyName]),
			reason:      "does not match",
			first:       "same",
			authorities: "1",
		},
		"twin of another": {
			why:         "the reference reads the other name",
			now:         epoch(),
			data:        changed(certName, other[certName]),
			reason:      "does not match",
			first:       "same",
			authorities: "1",
		},
		"clock behind": {
			why:         "who has the wrong time does not replace what others use",
			now:         epoch().Add(-2 * time.Hour),
			data:        made,
			first:       "same",
			authorities: "1",
		},
		"replaced": {"replicas may still serve the old one", epoch().Add(time.Minute), both, "", "same", "2"},
		"replaced long ago": {
			why:         "all have changed by now",
			now:         epoch().Add(2 * time.Hour),
			data:        both,
			reason:      "no longer needed",
			first:       "same",
			authorities: "1",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(c.data)
			in := at(c.now, c.data)
			data, reason, err := plan(in)
			if err != nil {
				t.Fatal(err)
			}
			if (reason == "") != (c.reason == "") || !strings.Contains(reason, c.reason) {
				t.Errorf("%s: reason %q, want %q", c.why, reason, c.reason)
			}
			if diff := cmp.Diff(before, c.data); diff != "" {
				t.Errorf("the input changed:\n%s", diff)
			}
			bundle := decode(data[caCertName])
			first := "new"
			if len(decode(made[caCertName])) > 0 && bundle[0].Equal(decode(made[caCertName])[0]) {
				first = "same"
			}
			if got := string(rune('0' + len(bundle))); first != c.first || got != c.authorities {
				t.Errorf("%s: the first CA is %s of %s, want %s of %s", c.why, first, got, c.first, c.authorities)
			}
			converged(t, in, data)
		})
	}
}

// converged asserts what holds after any plan: it is served, it is trusted, and it stays.
func converged(t *testing.T, in input, data map[string][]byte) {
	t.Helper()
	m, err := parse(data, false)
	if err != nil {
		t.Fatal(err)
	}
	now := in.now
	if m.chain[0].NotBefore.After(now) {
		now = m.chain[0].NotBefore
	}
	for _, name := range in.names {
		if err := verify(m.chain, m.authorities, name, now); err != nil {
			t.Errorf("who trusts the CA does not accept the certificate for %s: %v", name, err)
		}
	}
	in.data = data
	if _, reason, err := plan(in); reason != "" || err != nil {
		t.Errorf("a second plan changes again: %s, %v", reason, err)
	}
}

// A Secret of another program is refused where one of its certificates is malformed: nothing would be known of the
// chain.
func TestMalformedChain(t *testing.T) {
	data := filled(t, epoch())
	if _, err := parse(data, true); err != nil {
		t.Fatal(err)
	}
	data[tlsCertName] = append(bytes.Clone(data[tlsCertName]),
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...)
	if m, err := parse(data, true); err == nil {
		t.Errorf("took a chain of %d certificates", len(m.chain))
	}
}

// A replica that still serves with another CA is trusted until it has changed, also when the Secret was lost.
func TestPlanKeepsWhatIsServed(t *testing.T) {
	lost := filled(t, epoch())
	in := at(epoch().Add(day), nil)
	in.trusted = decode(lost[caCertName])
	data, _, err := plan(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(decode(lost[tlsCertName]), decode(data[caCertName]), in.names[0], in.now); err != nil {
		t.Error(err)
	}
	in = at(in.now.Add(2*time.Hour), data)
	in.trusted = decode(data[caCertName])
	if data, _, err = plan(in); err != nil {
		t.Fatal(err)
	}
	if got := len(decode(data[caCertName])); got != 1 {
		t.Errorf("after the overlap %d CAs are trusted, want 1", got)
	}
}

// Years of planning at random times, with losses: who was trusted at a step still is at the next, within the overlap.
func TestPlanOverYears(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	now := epoch()
	var data map[string][]byte
	var trusted []*x509.Certificate
	for range 25 {
		if random.IntN(4) == 0 {
			data = nil
		}
		in := at(now, data)
		in.trusted = trusted
		next, reason, err := plan(in)
		if err != nil {
			t.Fatal(err)
		}
		converged(t, in, next)
		if len(data) > 0 && reason != "" && decode(data[tlsCertName])[0].NotAfter.After(now) {
			err := verify(decode(data[tlsCertName]), decode(next[caCertName]), in.names[0], now)
			if err != nil {
				t.Errorf("at %s, %s: what was served is not trusted any more: %v", now, reason, err)
			}
		}
		data, trusted = next, decode(next[caCertName])
		now = now.Add(time.Duration(random.Int64N(int64(200 * day))))
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("x"), []byte(nil))
	in := at(epoch(), nil)
	data, _, err := plan(in)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[caCertName], data[tlsCertName], data[tlsKeyName])
	f.Fuzz(func(t *testing.T, ca, cert, key []byte) {
		in.data = map[string][]byte{
			caCertName: ca, caKeyName: key, tlsCertName: cert, tlsKeyName: key, certName: cert, keyName: key,
		}
		data, _, err := plan(in)
		if err != nil {
			t.Fatal(err)
		}
		converged(t, in, data)
	})
}

func TestOptions(t *testing.T) {
	service := nameOf("b", "a")
	if err := (Options{Targets: []Target{Mutating("x")}}).validate(service); err != nil {
		t.Error(err)
	}
	for want, o := range map[string]Options{
		"renew before": {RenewBefore: 3 * year},
		"target":       {Targets: []Target{{}}},
		"negative":     {StartTimeout: -1},
	} {
		if err := o.validate(service); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want an error with %q", err, want)
		}
	}
	if err := (Options{}).validate(nameOf("", "a")); err == nil {
		t.Error("a service without namespace is accepted")
	}
}

func nameOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
