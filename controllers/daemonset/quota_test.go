package daemonset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// quota has the API server reject pods beyond a number, as a ResourceQuota does.
func (m *model) quota(pods int) {
	m.Helper()
	m.restart(interceptor.NewClient(m.Server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, isPod := o.(*corev1.Pod); isPod && len(m.pods()) >= pods {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("exceeded quota"))
			}
			return c.Create(ctx, o, opts...)
		},
	}))
}

// A surge that a quota bounds goes on: the pods that new ones replace free the quota.
func TestSurgeQuota(t *testing.T) {
	m := newModel(t, 5, daemonset.Options{})
	set := m.create(surge("3"))
	m.eventually(set, settled(5))
	m.quota(6)
	m.change(set, image("agent:2"))
	m.eventually(set, settled(5))
	m.becomes(set, "n1:2 n2:2 n3:2 n4:2 n5:2")
}

// Pods of nodes that do not fit any more are deleted although no pod can be created elsewhere before that.
func TestMoveQuota(t *testing.T) {
	m := newModel(t, 4, daemonset.Options{})
	for node, color := range map[string]string{"n1": "blue", "n2": "blue", "n3": "green", "n4": "green"} {
		m.label(node, "color", color)
	}
	set := m.create(func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"color": "blue"} })
	m.eventually(set, settled(2))
	m.quota(2)
	m.change(set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"color": "green"} })
	m.becomes(set, "n3:1 n4:1")
}

// A spec whose revision a quota rejects is not observed until the revision is stored: a takeover may record fields of
// an observed spec at the revision in the status.
func TestRevisionQuota(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(1))
	m.restart(interceptor.NewClient(m.Server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, ok := o.(*appsv1.ControllerRevision); ok {
				resource := schema.GroupResource{Resource: "controllerrevisions"}
				return apierrors.NewForbidden(resource, "", errors.New("exceeded quota"))
			}
			return c.Create(ctx, o, opts...)
		},
	}))
	m.change(set, image("agent:2"))
	m.eventually(set, func(set *v1beta1.DaemonSet) error {
		if !strings.Contains(fmt.Sprint(set.Status.Conditions), "exceeded quota") {
			return errors.New("the failure is not reported")
		}
		return nil
	})
	if set.Status.ObservedGeneration == set.Generation {
		t.Errorf("generation %d is observed without its revision", set.Generation)
	}
	m.restart(m.Server)
	m.becomes(set, "n1:2")
}
