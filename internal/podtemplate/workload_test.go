package podtemplate_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/internal/podtemplate"
)

// What the API server finds invalid has its path in the template, and what it refuses for another reason is no fault of
// the template.
func TestCheckWorkload(t *testing.T) {
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	invalid := apierrors.NewInvalid(kind, "x", field.ErrorList{
		field.NotSupported(field.NewPath("spec", "strategy", "type"), "Gently", []string{"Recreate"}),
	})
	bare := apierrors.NewInvalid(kind, "x", nil)
	bare.ErrStatus.Details.Causes = nil
	cases := map[string]struct {
		answer error
		want   string
		fails  bool
	}{
		"valid":           {nil, "", false},
		"invalid":         {invalid, "spec.template.deploymentTemplate.spec.strategy.type", false},
		"invalid somehow": {bare, "", true},
		"no quota":        {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota")), "", false},
		"no answer":       {errors.New("connection refused"), "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			api := interceptor.NewClient(nil, interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, _ client.Object, all ...client.CreateOption) error {
					if len((&client.CreateOptions{}).ApplyOptions(all).DryRun) == 0 {
						t.Error("this would be stored")
					}
					return c.answer
				},
			})
			faults, err := podtemplate.CheckWorkload(t.Context(), api, &appsv1.Deployment{},
				field.NewPath("spec", "template", "deploymentTemplate"))
			got := ""
			if len(faults) > 0 {
				got = faults[0].Field
			}
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("faults %v, %v", faults, err)
			}
		})
	}
}
