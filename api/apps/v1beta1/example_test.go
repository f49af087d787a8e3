package v1beta1_test

import (
	"fmt"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func Example_quickStart() {
	c := v1beta1.CloneSet{}
	c.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
	}
	c.Default()
	fmt.Println(*c.Spec.Replicas, c.Spec.UpdateStrategy.Type, c.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable)
	// Output: 1 RollingUpdate 20%
}
