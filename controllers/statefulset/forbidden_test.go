package statefulset

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A claim whose growth the API server forbids for ever, as a quota does, costs one request a pass, and an error that
// makes the pauses between passes grow. The other pods are updated. The set reports the refusal.
func TestForbiddenExpansion(t *testing.T) {
	m := newModel(t, Options{ExpandClaims: true})
	set := m.create("web", 3, parallel, inPlace, expanding)
	m.becomes(set, "0:1 1:1 2:1")
	m.provision()
	const claim = "data-web-1"
	forbidden := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), claim, errors.New("exceeded quota"))
	refused := 0
	m.restart(interceptor.NewClient(m.Server, interceptor.Funcs{Patch: func(
		ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption,
	) error {
		if o.GetName() == claim {
			refused++
			return forbidden
		}
		return c.Patch(ctx, o, p, options...)
	}}))
	m.change(set, withImage("web:2"), sized("2Gi"))
	m.eventually(set, func(*v1beta1.StatefulSet) error {
		m.provision()
		return unless(m.picture(set) == "0:2 1:1 2:2")
	})
	m.Still()
	for range 3 {
		before := refused
		_, err := m.Reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(set)})
		if refused != before+1 || err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			t.Errorf("a pass sent %d requests that are forbidden, and returned %v", refused-before, err)
		}
	}
	m.Look(set)
	failed := func(c appsv1.StatefulSetCondition) bool {
		return c.Status == corev1.ConditionTrue && strings.Contains(c.Message, "exceeded quota")
	}
	if !slices.ContainsFunc(set.Status.Conditions, failed) {
		t.Errorf("conditions %+v", set.Status.Conditions)
	}
	if len(m.Server.Events(set, "FailedResize")) == 0 {
		t.Error("no event")
	}
}
