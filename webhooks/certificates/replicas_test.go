//go:build envtest

package certificates_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/certificates"
)

// world is a namespace with all targets of a Keeper, the CRD excepted, which comes later.
type world struct {
	*cluster.Cluster

	service    types.NamespacedName
	mutating   *admissionv1.MutatingWebhookConfiguration
	validating *admissionv1.ValidatingWebhookConfiguration
	crd        *apiextensionsv1.CustomResourceDefinition
}

func newWorld(t *testing.T) *world {
	t.Helper()
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{Cluster: cluster.Start(t, cluster.Options{Scheme: all})}
	w.service = types.NamespacedName{Namespace: w.Namespace(t), Name: "webhooks"}
	id := w.service.Namespace
	ours := admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
		Namespace: w.service.Namespace, Name: w.service.Name, Path: ptr.To("/x"),
	}}
	others := *ours.DeepCopy()
	others.Service.Name, others.CABundle = "another", somebodysCA(t)
	meta := metav1.ObjectMeta{Name: id}
	entry := func(name string, config admissionv1.WebhookClientConfig) admissionv1.MutatingWebhook {
		return admissionv1.MutatingWebhook{
			Name: name, ClientConfig: config, SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}
	}
	w.mutating = &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{
		entry("a.example.com", others), entry("b.example.com", ours),
	}}
	validating := admissionv1.ValidatingWebhook{
		Name: "c.example.com", ClientConfig: ours, SideEffects: ptr.To(admissionv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
	w.validating = &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{validating},
	}
	w.crd = converted(id, w.service)
	for _, object := range []client.Object{w.mutating, w.validating} {
		w.create(t, object)
	}
	return w
}

func (w *world) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := w.Client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), object) })
}

// converted is a CRD of two versions in a group of its own.
func converted(id string, service types.NamespacedName) *apiextensionsv1.CustomResourceDefinition {
	open := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + id + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: id + ".example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: open}, {Name: "v2", Served: true, Schema: open},
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig: &apiextensionsv1.WebhookClientConfig{
						Service: &apiextensionsv1.ServiceReference{Namespace: service.Namespace, Name: service.Name},
					},
				},
			},
		},
	}
}

// replica is a Keeper with a server.
type replica struct {
	keeper  *certificates.Keeper
	address string
	stop    func()
}

func (w *world) replica(t *testing.T, o certificates.Options) *replica {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Targets = []certificates.Target{
		certificates.Mutating(w.mutating.Name), certificates.Validating(w.validating.Name),
		certificates.Conversion(w.crd.Name),
	}
	keeper, err := certificates.New(w.Config, w.service, o)
	if err != nil {
		t.Fatal(err)
	}
	serving := &tls.Config{}
	keeper.TLS(serving)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		_ = server.Serve(tls.NewListener(listener, serving))
	}()
	running.Add(1)
	go func() {
		defer running.Done()

		if err := keeper.Start(ctx); err != nil {
			t.Errorf("the keeper ended: %v", err)
		}
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		_ = server.Close()
		running.Wait()
	})
	t.Cleanup(stop)
	return &replica{keeper: keeper, address: listener.Addr().String(), stop: stop}
}

func (r *replica) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody)
	return errors.Join(err, r.keeper.Ready(request))
}

// call connects as an API server does that has read the bundle in the given form.
func (w *world) call(r *replica, bundle []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	c, err := tls.Dial("tcp", r.address, &tls.Config{
		RootCAs: roots, ServerName: w.service.Name + "." + w.service.Namespace + ".svc",
	})
	if err == nil {
		err = c.Close()
	}
	return err
}

func (w *world) data(ctx context.Context) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := w.Client.Get(ctx, types.NamespacedName{Namespace: w.service.Namespace, Name: w.service.Name + "-certs"}, secret)
	return secret.Data, err
}

// injected says which target has not the CA of the Secret.
func (w *world) injected(ctx context.Context) error {
	data, err := w.data(ctx)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{w.mutating, w.validating, w.crd} {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	want := data["ca-cert.pem"]
	for name, got := range map[string][]byte{
		"mutating":   w.mutating.Webhooks[1].ClientConfig.CABundle,
		"validating": w.validating.Webhooks[0].ClientConfig.CABundle,
	} {
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s: CA is %d bytes, want %d", name, len(got), len(want))
		}
	}
	if w.crd.UID != "" && !bytes.Equal(w.crd.Spec.Conversion.Webhook.ClientConfig.CABundle, want) {
		return errors.New("conversion: another CA")
	}
	return nil
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}
