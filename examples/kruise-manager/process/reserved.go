package process

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// reservedPolicy is the policy that reserves namespaces: see config/rbac/policy.yaml.
const reservedPolicy = "kruise-manager-reserved"

// reserved warns of workloads in a namespace in which the policy refuses the manager's pods. OpenKruise runs workloads
// in kube-system: after a takeover their pods stay, and no other one comes. It runs once, on the leader: a read of the
// policy and, where the policy reserves kube-system, a list of one object of each kind.
type reserved struct {
	reader    runtimeclient.Reader
	recorder  record.EventRecorder
	namespace string
}

// Start implements manager.Runnable. No answer of the API server ends the process.
func (r *reserved) Start(ctx context.Context) error {
	if r.namespace != "" && r.namespace != metav1.NamespaceSystem {
		return nil
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := r.reader.Get(ctx, runtimeclient.ObjectKey{Name: reservedPolicy}, policy); err != nil {
		log.FromContext(ctx).V(1).Info("Skipped looking for workloads in reserved namespaces", "reason", err.Error())
		return nil
	}
	if reserves(policy, metav1.NamespaceSystem) {
		for _, kind := range workloadKinds() {
			r.look(ctx, kind)
		}
	}
	return nil
}

// reserves reports whether a policy names a namespace.
func reserves(policy *admissionregistrationv1.ValidatingAdmissionPolicy, namespace string) bool {
	match := policy.Spec.MatchConstraints
	return match != nil && match.NamespaceSelector != nil && slices.ContainsFunc(match.NamespaceSelector.MatchExpressions,
		func(e metav1.LabelSelectorRequirement) bool {
			return e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn &&
				slices.Contains(e.Values, namespace)
		})
}

// workloadKinds are the kinds whose objects have pods or jobs made.
func workloadKinds() []schema.GroupVersionKind {
	all := []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("EphemeralJob")}
	for _, kind := range []string{
		"AdvancedCronJob", "BroadcastJob", "CloneSet", "DaemonSet", "StatefulSet", "UnitedDeployment",
	} {
		all = append(all, v1beta1.GroupVersion.WithKind(kind))
	}
	return all
}

// look warns where an object of a kind exists.
func (r *reserved) look(ctx context.Context, kind schema.GroupVersionKind) {
	object := first(ctx, r.reader, kind, metav1.NamespaceSystem)
	if object == nil {
		return
	}
	log.FromContext(ctx).Info("Workloads in a reserved namespace get no pods",
		"kind", kind.Kind, "namespace", object.Namespace, "name", object.Name, "policy", reservedPolicy)
	r.recorder.Eventf(object, corev1.EventTypeWarning, "NamespaceReserved", "The policy %s keeps the manager from "+
		"creating and deleting pods of each %s in %s: take the namespace out of the list of the policy",
		reservedPolicy, kind.Kind, object.Namespace)
}
