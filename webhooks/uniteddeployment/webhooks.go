package uniteddeployment

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/templated"
	"github.com/kruisekit/kruisekit/internal/validation"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-uniteddeployment"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-uniteddeployment"
)

// API is what the webhooks ask of the API server; client.Client has it.
type API = templated.API

// Options of the webhooks. The zero value behaves as the reference does by default.
type Options struct {
	// TemplateNoDefaults leaves the pod and claim templates of a statefulSetTemplate as they were written.
	TemplateNoDefaults bool
	// HostNetworkHostPorts also sets the host ports in a statefulSetTemplate of pods in the host's network. It has no effect with
	// TemplateNoDefaults.
	HostNetworkHostPorts bool
	// Delete reviews deletions at ValidatePath, as webhooks/deletion does. Nil allows them.
	Delete func(context.Context, admission.Request) admission.Response
	// Timeout of all calls of one admission. Default 8 seconds, which is less than the 10 seconds that API servers wait.
	Timeout time.Duration
}

// Webhooks answer admission requests for UnitedDeployments.
type Webhooks struct {
	*templated.Webhooks[*appsv1beta1.UnitedDeployment]
}

// New makes the webhooks.
func New(api API, o Options) (*Webhooks, error) {
	w, err := templated.New(api, kind(api), templated.Options{
		TemplateNoDefaults: o.TemplateNoDefaults, HostNetworkHostPorts: o.HostNetworkHostPorts, Delete: o.Delete, Timeout: o.Timeout,
	})
	if err != nil {
		return nil, err
	}
	return &Webhooks{w}, nil
}

// SetupWithManager serves the webhooks on the manager's webhook server.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	return w.Register(mgr, MutatePath, ValidatePath)
}

// change is what is done to a UnitedDeployment, under review.
type change = templated.Change[*appsv1beta1.UnitedDeployment]

// kind is UnitedDeployment, as its webhooks look at it.
func kind(api API) templated.Kind[*appsv1beta1.UnitedDeployment] {
	return templated.Kind[*appsv1beta1.UnitedDeployment]{
		Name:     "UnitedDeployment",
		Hub:      func() *appsv1beta1.UnitedDeployment { return &appsv1beta1.UnitedDeployment{} },
		Old:      func() templated.Spoke[*appsv1beta1.UnitedDeployment] { return &appsv1alpha1.UnitedDeployment{} },
		Validate: validation.UnitedDeployment, ValidateUpdate: validation.UnitedDeploymentUpdate,
		Lookup: func(ctx context.Context, c change) (field.ErrorList, error) { return workloadFaults(ctx, api, c) },
		At:     templateIn,
		Incomplete: func(object map[string]any) bool {
			member := memberOf(object)
			return member == statefulSet || member == advancedStatefulSet
		},
		AsWritten: func(object map[string]any) bool { return memberOf(object) != statefulSet },
	}
}

const (
	statefulSet         = "statefulSetTemplate"
	advancedStatefulSet = "advancedStatefulSetTemplate"
)

// memberOf returns the name of the one template of an object; empty for none. Of several, which are rejected, it returns one.
func memberOf(object map[string]any) string {
	spec, _ := object["spec"].(map[string]any)
	templates, _ := spec["template"].(map[string]any)
	for _, member := range []string{statefulSet, advancedStatefulSet, "cloneSetTemplate", "deploymentTemplate"} {
		if _, is := templates[member].(map[string]any); is {
			return member
		}
	}
	return ""
}

// templateIn returns the paths of the pod template and of the claim templates of an object.
func templateIn(object map[string]any) (template, claims []string) {
	member := memberOf(object)
	if member == "" {
		return nil, nil
	}
	at := func(last string) []string { return []string{"spec", "template", member, "spec", last} }
	if member == "deploymentTemplate" {
		return at("template"), nil
	}
	return at("template"), at("volumeClaimTemplates")
}

// workloadFaults are what the API server finds invalid in a built-in workload of a template that is new or has changed.
func workloadFaults(ctx context.Context, api API, c change) (field.ErrorList, error) {
	is, was := &c.Now.Spec.Template, &appsv1beta1.SubsetTemplate{}
	if c.IsUpdate {
		was = &c.Before.Spec.Template
	}
	metadata := func(of metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: c.Namespace, GenerateName: "dry-run-", Labels: of.Labels, Annotations: of.Annotations}
	}
	var workload client.Object
	at := field.NewPath("spec", "template")
	switch {
	case is.StatefulSetTemplate != nil && !equality.Semantic.DeepEqual(is.StatefulSetTemplate, was.StatefulSetTemplate):
		set := &appsv1.StatefulSet{ObjectMeta: metadata(is.StatefulSetTemplate.ObjectMeta), Spec: *is.StatefulSetTemplate.Spec.DeepCopy()}
		set.Spec.Selector = c.Now.Spec.Selector
		workload, at = set, at.Child(statefulSet)
	case is.DeploymentTemplate != nil && !equality.Semantic.DeepEqual(is.DeploymentTemplate, was.DeploymentTemplate):
		set := &appsv1.Deployment{ObjectMeta: metadata(is.DeploymentTemplate.ObjectMeta), Spec: *is.DeploymentTemplate.Spec.DeepCopy()}
		set.Spec.Selector = c.Now.Spec.Selector
		workload, at = set, at.Child("deploymentTemplate")
	default:
		return nil, nil
	}
	return podtemplate.CheckWorkload(ctx, api, workload, at)
}
