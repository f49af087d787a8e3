package disruption

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/pub"
)

// budgetKind is the kind of budgets.
func budgetKind() schema.GroupVersionKind {
	return policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget")
}

// budgetIndex has the budgets of the cluster. A budget whose spec cannot be decoded guards no pod.
type budgetIndex = stored.Index[known]

// known is a state of a budget.
type known struct {
	budget pub.Budget
	object *policyv1beta1.PodUnavailableBudget
}

// Stored implements groupcommit.State.
func (k known) Stored() client.Object { return k.object }

// newBudgetIndex returns an empty index with a clock.
func newBudgetIndex(now func() time.Time) *budgetIndex { return stored.NewIndex(read, now) }

// read decodes a budget.
func read(raw *unstructured.Unstructured) (known, error) {
	object, _, err := stored.Decode[policyv1beta1.PodUnavailableBudget](raw)
	if err != nil {
		return known{}, err
	}
	budget, _ := pub.Read(object) // the controller reports what cannot be read
	return known{budget, object}, nil
}
