package uniteddeployment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

const (
	// MutatePath is where API servers expect the defaults.
	MutatePath = "/mutate-apps-kruise-io-uniteddeployment"
	// ValidatePath is where they expect the rules.
	ValidatePath = "/validate-apps-kruise-io-uniteddeployment"
)

// New returns the webhooks of UnitedDeployments. Of the templates, a statefulSetTemplate alone gets defaults.
func New(api kinds.API, o kinds.Options) (kinds.Webhooks, error) {
	return kinds.New(api, kinds.Row[*appsv1beta1.UnitedDeployment]{
		Kind: appsv1beta1.GroupVersion.WithKind("UnitedDeployment"),
		Hub:  &appsv1beta1.UnitedDeployment{}, Old: &appsv1alpha1.UnitedDeployment{},
		MutatePath: MutatePath, ValidatePath: ValidatePath,
		Validate: validation.UnitedDeployment, ValidateUpdate: validation.UnitedDeploymentUpdate,
		Lookup: workloadFaults,
		Template: &kinds.Template{
			At: templateIn,
			Incomplete: func(object map[string]any) bool {
				member := memberOf(object)
				return member == statefulSet || member == advancedStatefulSet
			},
			AsWritten: func(object map[string]any) bool { return memberOf(object) != statefulSet },
		},
	}, o)
}

const (
	statefulSet         = "statefulSetTemplate"
	advancedStatefulSet = "advancedStatefulSetTemplate"
)

// memberOf returns the name of the one template of an object; empty for none. Of several, which are rejected, it
// returns one.
func memberOf(object map[string]any) string {
	spec, _ := object["spec"].(map[string]any)
	templates, _ := spec["template"].(map[string]any)
	for _, member := range []string{statefulSet, advancedStatefulSet, "cloneSetTemplate", "deploymentTemplate"} {
		if _, ok := templates[member].(map[string]any); ok {
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
func workloadFaults(
	ctx context.Context, api kinds.API, c kinds.Change[*appsv1beta1.UnitedDeployment],
) (found kinds.Finding, err error) {
	is, was := &c.Now.Spec.Template, &appsv1beta1.SubsetTemplate{}
	if c.IsUpdate {
		was = &c.Before.Spec.Template
	}
	metadata := func(of metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: c.Namespace, GenerateName: "dry-run-", Labels: of.Labels, Annotations: of.Annotations,
		}
	}
	var workload client.Object
	at := field.NewPath("spec", "template")
	switch set, deployment := is.StatefulSetTemplate, is.DeploymentTemplate; {
	case set != nil && !equality.Semantic.DeepEqual(set, was.StatefulSetTemplate):
		of := &appsv1.StatefulSet{ObjectMeta: metadata(set.ObjectMeta), Spec: *set.Spec.DeepCopy()}
		of.Spec.Selector = c.Now.Spec.Selector
		workload, at = of, at.Child(statefulSet)
	case deployment != nil && !equality.Semantic.DeepEqual(deployment, was.DeploymentTemplate):
		of := &appsv1.Deployment{ObjectMeta: metadata(deployment.ObjectMeta), Spec: *deployment.Spec.DeepCopy()}
		of.Spec.Selector = c.Now.Spec.Selector
		workload, at = of, at.Child("deploymentTemplate")
	default:
		return found, nil
	}
	found.Faults, err = podtemplate.CheckWorkload(ctx, api, workload, at)
	return found, err
}
