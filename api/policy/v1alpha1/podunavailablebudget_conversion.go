package v1alpha1

import (
	"strings"

	"github.com/kruisekit/kruisekit/api/internal/roundtrip"
	"github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

// ConvertTo fills hub with b.
func (b *PodUnavailableBudget) ConvertTo(hub *v1beta1.PodUnavailableBudget) error {
	return roundtrip.Up(b, hub, podUnavailableBudgetUp, podUnavailableBudgetDown)
}

// ConvertFrom fills b with hub.
func (b *PodUnavailableBudget) ConvertFrom(hub *v1beta1.PodUnavailableBudget) error {
	return roundtrip.Down(hub, b, podUnavailableBudgetUp, podUnavailableBudgetDown)
}

func podUnavailableBudgetUp(b *PodUnavailableBudget, hub *v1beta1.PodUnavailableBudget) {
	hub.ObjectMeta = b.ObjectMeta
	hub.Status = b.Status
	hub.Spec = v1beta1.PodUnavailableBudgetSpec{
		Selector:             b.Spec.Selector,
		TargetReference:      b.Spec.TargetReference,
		MaxUnavailable:       b.Spec.MaxUnavailable,
		MinAvailable:         b.Spec.MinAvailable,
		ProtectOperations:    protectOperationsUp(b.Annotations[PubProtectOperationAnnotation]),
		ProtectTotalReplicas: roundtrip.ParseInt32(b.Annotations[PubProtectTotalReplicasAnnotation]),
		PodGroupPolicy:       b.Spec.PodGroupPolicy,
	}
}

func podUnavailableBudgetDown(hub *v1beta1.PodUnavailableBudget, b *PodUnavailableBudget) {
	b.ObjectMeta = hub.ObjectMeta
	b.Status = hub.Status
	b.Spec = PodUnavailableBudgetSpec{
		Selector:        hub.Spec.Selector,
		TargetReference: hub.Spec.TargetReference,
		MaxUnavailable:  hub.Spec.MaxUnavailable,
		MinAvailable:    hub.Spec.MinAvailable,
		PodGroupPolicy:  hub.Spec.PodGroupPolicy,
	}
	operations := protectOperationsDown(hub.Spec.ProtectOperations)
	b.Annotations = roundtrip.WithKey(b.Annotations, PubProtectOperationAnnotation, operations)
	replicas := roundtrip.FormatInt32(hub.Spec.ProtectTotalReplicas)
	b.Annotations = roundtrip.WithKey(b.Annotations, PubProtectTotalReplicasAnnotation, replicas)
}

// protectOperationsUp reads the operations it knows. One that it does not is as good as absent.
func protectOperationsUp(text string) []PubOperation {
	var operations []PubOperation
	for item := range strings.SplitSeq(text, ",") {
		switch o := PubOperation(strings.TrimSpace(item)); o {
		case PubDeleteOperation, PubUpdateOperation, PubEvictOperation, PubResizeOperation:
			operations = append(operations, o)
		}
	}
	return operations
}

func protectOperationsDown(operations []PubOperation) string {
	items := make([]string, len(operations))
	for i, o := range operations {
		items[i] = string(o)
	}
	return strings.Join(items, ",")
}
