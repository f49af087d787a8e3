//go:build envtest

package certificates_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/webhooks/certificates"
)

// somebodysCA is any certificate, for the API server accepts nothing else as a CA.
func somebodysCA(t *testing.T) []byte {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func TestReplicasShareOneCertificate(t *testing.T) {
	w := newWorld(t)
	// Three replicas race for a Secret that does not exist.
	var replicas []*replica
	for range 3 {
		replicas = append(replicas, w.replica(t, certificates.Options{}))
	}
	for _, r := range replicas {
		eventually(t, "ready", r.ready)
	}
	if err := w.injected(t.Context()); err != nil {
		t.Errorf("replicas are ready: %v", err)
	}
	data, err := w.data(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(data["ca-cert.pem"], []byte("BEGIN")); got != 1 {
		t.Errorf("%d CAs, want 1", got)
	}
	for _, key := range []string{"ca-key.pem", "ca-cert.pem", "key.pem", "tls.key", "cert.pem", "tls.crt"} {
		if len(data[key]) == 0 {
			t.Errorf("the Secret has no %s", key)
		}
	}
	if got := w.mutating.Webhooks[0].ClientConfig.CABundle; bytes.Equal(got, data["ca-cert.pem"]) {
		t.Error("the CA is also in an entry of another service")
	}

	// What is created later, or edited, gets the CA.
	w.create(t, w.crd)
	eventually(t, "a CRD that comes later", w.injected)
	w.validating.Webhooks[0].ClientConfig.CABundle = nil
	if err := w.Client.Update(t.Context(), w.validating); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the CA in an edited configuration", w.injected)

	// The Secret is lost. API servers can call all the time, whichever replica they reach.
	stop := w.callAllTheTime(t, replicas)
	if err := w.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.service.Namespace, Name: w.service.Name + "-certs",
	}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new CA before the old one", func(ctx context.Context) error {
		next, err := w.data(ctx)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(string(next["ca-cert.pem"]), string(data["ca-cert.pem"])) ||
			len(next["ca-cert.pem"]) == len(data["ca-cert.pem"]) {
			return errors.New("not yet")
		}
		return w.injected(ctx)
	})
	next, err := w.data(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(next["ca-cert.pem"])
	for _, r := range replicas {
		eventually(t, "a certificate of the new CA", func(context.Context) error {
			return w.call(r, pem.EncodeToMemory(block))
		})
		if err := r.ready(t.Context()); err != nil {
			t.Errorf("after the rotation: %v", err)
		}
	}
	stop()
}

// callAllTheTime calls every replica with the CA that a configuration has at the time.
func (w *world) callAllTheTime(t *testing.T, replicas []*replica) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var calls int
	running.Add(1)
	go func() {
		defer running.Done()

		for ctx.Err() == nil {
			calls++
			if err := w.callAll(ctx, replicas); err != nil && ctx.Err() == nil {
				t.Errorf("call %d: %v", calls, err)
				return
			}
		}
	}()
	return func() {
		cancel()
		running.Wait()
		t.Logf("%d rounds of calls", calls)
	}
}

func (w *world) callAll(ctx context.Context, replicas []*replica) error {
	now := &admissionv1.MutatingWebhookConfiguration{}
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(w.mutating), now); err != nil {
		return err
	}
	for i, r := range replicas {
		if err := w.call(r, now.Webhooks[1].ClientConfig.CABundle); err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
		if err := r.ready(ctx); err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
	}
	return nil
}

// With certificates from outside nothing is written, and ready is who has one.
func TestExternal(t *testing.T) {
	w := newWorld(t)
	first := w.replica(t, certificates.Options{})
	eventually(t, "ready", first.ready)
	first.stop()
	made, err := w.data(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.service.Namespace, Name: "by-others"}}
	external := w.replica(t, certificates.Options{Secret: secret.Name, External: true})
	if err := external.ready(t.Context()); err == nil {
		t.Error("ready without a Secret")
	}
	secret.Data = map[string][]byte{"ca.crt": made["ca-cert.pem"], "tls.crt": made["tls.crt"], "tls.key": made["tls.key"]}
	w.create(t, secret)
	eventually(t, "ready with the Secret", external.ready)
	w.validating.ResourceVersion = ""
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(w.validating), w.validating); err != nil {
		t.Fatal(err)
	}
	w.validating.Webhooks[0].ClientConfig.CABundle = nil
	if err := w.Client.Update(t.Context(), w.validating); err != nil {
		t.Fatal(err)
	}
	again := secret.DeepCopy()
	again.Annotations = map[string]string{"touched": "yes"}
	if err := w.Client.Update(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(w.validating), w.validating); err != nil {
		t.Fatal(err)
	}
	if len(w.validating.Webhooks[0].ClientConfig.CABundle) > 0 {
		t.Error("a CA was written, which is for others to do")
	}
}

// Without the right to read the Secret there is no certificate, and the process must end rather than stay unready.
func TestStartTimeout(t *testing.T) {
	w := newWorld(t)
	keeper, err := certificates.New(w.Config, types.NamespacedName{Namespace: "does-not-exist", Name: "x"},
		certificates.Options{StartTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("it ended with %v", err)
	}
	var config tls.Config
	keeper.TLS(&config)
	if _, err := config.GetCertificate(nil); err == nil || config.MinVersion != tls.VersionTLS12 {
		t.Error("it serves without a certificate, or with old TLS")
	}
}
