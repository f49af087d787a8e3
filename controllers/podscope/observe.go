package podscope

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// observe reads what a pass is decided upon, all of it from caches.
func (r *Reconciler) observe(ctx context.Context) (o snapshot, err error) {
	o.now = r.options.Now()
	for name, into := range map[string]**configuration{
		r.options.Configuration: &o.pods, r.options.Provisional: &o.provisional, r.options.MainConfiguration: &o.main,
	} {
		if name == "" {
			continue
		}
		if *into, err = r.configuration(ctx, name); err != nil {
			return o, err
		}
	}
	for i := range r.sources {
		var objects []*unstructured.Unstructured
		if kind := r.sources[i].Kind; r.followed[kind] {
			if objects, err = stored.List(ctx, r.objects, kind); err != nil {
				return o, err
			}
		}
		o.contributions = append(o.contributions, r.sources[i].Contribute(objects))
	}
	return o, nil
}

// configuration reads one from its cache; nil if it does not exist.
func (r *Reconciler) configuration(ctx context.Context, name string) (*configuration, error) {
	c := r.form.empty()
	err := r.configurations[name].Get(ctx, types.NamespacedName{Name: name}, c, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", name, err)
	}
	return r.form.read(c)
}

// names of the configurations.
func (r *Reconciler) names() []string {
	return slices.DeleteFunc([]string{r.options.Configuration, r.options.Provisional, r.options.MainConfiguration},
		func(name string) bool { return name == "" })
}

// form is the kind of configuration that is kept. Entries of both kinds are planned and compared as those of a
// MutatingWebhookConfiguration, which has one field more: reinvocationPolicy.
type form struct {
	// controller is the name of the controller.
	controller string
	// webhook is its name in metrics.
	webhook string
	// disruptions are kept in a ValidatingWebhookConfiguration.
	disruptions bool
}

const webhookPods, webhookDisruptions = "pods", "disruptions"

// empty is an object of the kind.
func (f form) empty() client.Object {
	if f.disruptions {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{}
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{}
}

// read returns a live configuration as it is compared.
func (form) read(o client.Object) (*configuration, error) {
	if c, ok := o.(*configuration); ok {
		return c, nil
	}
	c := &configuration{}
	return c, convert(o, c)
}

// write returns a planned write as it is sent. A patch is the same for both kinds, because disruptions have no
// reinvocationPolicy.
func (f form) write(w *write.Write) (*write.Write, error) {
	if !f.disruptions {
		return w, nil
	}
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	sent := *w
	sent.Object = object
	return &sent, convert(w.Object, object)
}

func convert(from, into any) error {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("convert configuration: %w", err)
	}
	return nil
}
