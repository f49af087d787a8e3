package podscope

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/controllers/podscope/internal/steady"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

// observe reads what a pass is decided upon, all of it from caches.
func (r *Reconciler) observe(ctx context.Context) (o entries.Observation, err error) {
	o.Now = r.options.Now()
	for name, into := range map[string]**admissionregistrationv1.MutatingWebhookConfiguration{
		r.options.Configuration: &o.Pods, r.options.Provisional: &o.Provisional, r.options.MainConfiguration: &o.Main,
	} {
		if name == "" {
			continue
		}
		if *into, err = r.configuration(ctx, name); err != nil {
			return o, err
		}
	}
	err = r.want(ctx, &o)
	return o, err
}

// configuration reads one from its cache; nil if it does not exist.
func (r *Reconciler) configuration(
	ctx context.Context, name string,
) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	c := r.form.empty()
	err := r.configurations[name].Get(ctx, types.NamespacedName{Name: name}, c, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", name, err)
	}
	return r.form.read(c), nil
}

// names of the configurations.
func (r *Reconciler) names() []string {
	return slices.DeleteFunc([]string{r.options.Configuration, r.options.Provisional, r.options.MainConfiguration},
		func(name string) bool { return name == "" })
}

// want sets the scope of the steps, and the SidecarSets that it was planned from.
func (r *Reconciler) want(ctx context.Context, o *entries.Observation) error {
	if r.options.Off {
		return nil
	}
	var all []scope.Contribution
	for _, source := range r.sources {
		objects, err := r.list(ctx, source.Kind)
		if err != nil {
			return err
		}
		if source.Kind == scope.Kind() {
			o.Sets = objects
		}
		all = append(all, source.Contribute(objects))
	}
	o.Steady = steady.Next(all, r.state.Steady,
		steady.Policy{Keep: r.options.KeepRemoved, Changes: r.options.Changes}, o.Now)
	in := scope.Input{Client: r.options.client(), Namespace: r.options.Namespace, Contributions: o.Steady.Contributions}
	var err error
	if r.form.disruptions {
		in.Client = r.options.reach().At(scope.DisruptionPath)
		o.Want, err = scope.Disruptions(in, scope.Operations{
			Deletes: !r.options.NoDeletes, Updates: r.options.Updates, Exempt: r.options.ExemptUsers,
		})
	} else {
		o.Want, err = scope.Plan(in)
	}
	return err
}

// list returns all objects of a kind; none for an empty kind, or for one that is not followed yet.
func (r *Reconciler) list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	if !r.followed[kind] {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list objects of kind %s: %w", kind.Kind, err)
	}
	all := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
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

func mutating() form { return form{controller: "podscope-controller", webhook: webhookPods} }

func validating() form {
	return form{controller: "disruptionscope-controller", webhook: webhookDisruptions, disruptions: true}
}

// empty is an object of the kind.
func (f form) empty() client.Object {
	if f.disruptions {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{}
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{}
}

// read returns a live configuration as it is compared. It shares memory with the object.
func (form) read(o client.Object) *admissionregistrationv1.MutatingWebhookConfiguration {
	if m, is := o.(*admissionregistrationv1.MutatingWebhookConfiguration); is {
		return m
	}
	v, is := o.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !is {
		return nil
	}
	m := &admissionregistrationv1.MutatingWebhookConfiguration{TypeMeta: v.TypeMeta, ObjectMeta: v.ObjectMeta}
	for i := range v.Webhooks {
		w := &v.Webhooks[i]
		m.Webhooks = append(m.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name:                    w.Name,
			ClientConfig:            w.ClientConfig,
			Rules:                   w.Rules,
			FailurePolicy:           w.FailurePolicy,
			MatchPolicy:             w.MatchPolicy,
			NamespaceSelector:       w.NamespaceSelector,
			ObjectSelector:          w.ObjectSelector,
			SideEffects:             w.SideEffects,
			TimeoutSeconds:          w.TimeoutSeconds,
			AdmissionReviewVersions: w.AdmissionReviewVersions,
			MatchConditions:         w.MatchConditions,
		})
	}
	return m
}

// write returns a planned write as it is sent. A patch is the same for both kinds, because disruptions have no
// reinvocationPolicy.
func (f form) write(w *write.Write) (*write.Write, error) {
	if !f.disruptions {
		return w, nil
	}
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.Object.GetName()},
	}
	if w.Verb == write.Create {
		data, err := json.Marshal(w.Object)
		if err == nil {
			err = json.Unmarshal(data, object)
		}
		if err != nil {
			return nil, fmt.Errorf("convert configuration: %w", err)
		}
		object.TypeMeta = metav1.TypeMeta{}
	}
	sent := *w
	sent.Object = object
	return &sent, nil
}
