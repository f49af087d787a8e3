//go:build envtest

package disruptions_test

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

// counting is a client whose writes of the statuses of budgets are counted.
func (g *ground) counting(config *rest.Config, o client.Options) (client.Client, error) {
	c, err := client.NewWithWatch(config, o)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		SubResourcePatch: func(
			ctx context.Context, c client.Client, name string, object client.Object, p client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			err := c.SubResource(name).Patch(ctx, object, p, options...)
			if kind := object.GetObjectKind().GroupVersionKind(); kind.Group == policyv1beta1.GroupVersion.Group {
				g.writes.Add(1)
				if apierrors.IsConflict(err) {
					g.conflicts.Add(1)
				}
			}
			return err
		},
	}), nil
}
