//go:build envtest

package native_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/native"
	adapter "github.com/kruisekit/kruisekit/workload/native"
)

const (
	hold   = adapter.HoldKey
	asking = adapter.RolloutKey
)

// TestHold shows that the webhook and the policy hold the same writes, and that a webhook that is down holds none.
func TestHold(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		BuiltIn: []string{"deployments"}, Webhooks: []string{"mrollouthold.kb.io", "mrolloutholdofnamespace.kb.io"},
		Setup: func(mgr ctrl.Manager, _ client.Client) error { return native.SetupWithManager(mgr) },
	})
	for name, value := range map[string]string{"plain": "true", "asks": adapter.Enabled} {
		if err := g.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{asking: value},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range writes() {
		if err := g.Client.Create(t.Context(), c.stored(name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("webhook", func(t *testing.T) { holds(t, g) })
	g.Stop(t)
	if held, err := writes()["annotation"].held(t.Context(), g, "annotation"); err != nil || held {
		t.Fatalf("no replica is up: held %t, %v", held, err)
	}
	t.Run("policy", func(t *testing.T) {
		g.Needs(t, 36, "MutatingAdmissionPolicy")
		if out, err := g.Kubectl(t.Context(), "apply", "-f", "../../config/native/hold/policy.yaml"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		holds(t, g)
	})
}

type change struct {
	why       string
	namespace string
	// annotations before the write, and paused.
	annotations map[string]string
	paused      bool
	write       func(*appsv1.Deployment)
	want        bool
}

func writes() map[string]change {
	image := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" }
	return map[string]change{
		"annotation": {
			why: "the Deployment asks", namespace: "plain", annotations: map[string]string{asking: "{}"},
			write: image, want: true,
		},
		"namespace": {why: "its namespace asks", namespace: "asks", write: image, want: true},
		"both": {
			why: "the Deployment and its namespace ask", namespace: "asks",
			annotations: map[string]string{asking: adapter.Enabled}, write: image, want: true,
		},
		"disabled": {
			why: "the annotation wins", namespace: "asks", annotations: map[string]string{asking: adapter.Disabled},
			write: image,
		},
		"neither": {why: "nothing asks", namespace: "plain", write: image},
		"replicas": {
			why: "the template stays", namespace: "plain", annotations: map[string]string{asking: "{}"},
			write: func(d *appsv1.Deployment) { *d.Spec.Replicas = 4 },
		},
		"paused": {
			why: "the pause of a user is the user's", namespace: "plain", annotations: map[string]string{asking: "{}"},
			paused: true, write: image, want: false,
		},
		"resumed": {
			why: "a GitOps tool does not end a hold", namespace: "plain",
			annotations: map[string]string{asking: "{}", hold: "0"}, paused: true,
			write: func(d *appsv1.Deployment) { d.Spec.Paused = false }, want: true,
		},
		"released": {
			why: "the manager ends the hold", namespace: "plain",
			annotations: map[string]string{asking: "{}", hold: "0"}, paused: true,
			write: func(d *appsv1.Deployment) {
				d.Spec.Paused = false
				delete(d.Annotations, hold)
			},
		},
		"asks no more": {
			why: "the built-in controller rolls out", namespace: "plain",
			annotations: map[string]string{asking: "{}", hold: "0"}, paused: true,
			write: func(d *appsv1.Deployment) {
				d.Spec.Paused = false
				delete(d.Annotations, asking)
			},
		},
	}
}

func (c change) stored(name string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.namespace, Name: strings.ReplaceAll(name, " ", "-"), Annotations: maps.Clone(c.annotations),
	}}
	d.Spec.Selector, d.Spec.Paused = &metav1.LabelSelector{MatchLabels: labels}, c.paused
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	return d
}

// held reports whether a write of the Deployment is held, in a dry run.
func (c change) held(ctx context.Context, g *reviewtest.Ground, name string) (bool, error) {
	d := c.stored(name)
	if err := g.Client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
		return false, err
	}
	c.write(d)
	if err := g.Client.Update(ctx, d, client.DryRunAll); err != nil {
		return false, err
	}
	_, has := d.Annotations[hold]
	return has && d.Spec.Paused, nil
}

func holds(t *testing.T, g *reviewtest.Ground) {
	reviewtest.Until(t, "nothing is held", func(ctx context.Context) error {
		held, err := writes()["namespace"].held(ctx, g, "namespace")
		if err == nil && !held {
			err = errors.New("not held")
		}
		return err
	})
	for name, c := range writes() {
		if held, err := c.held(t.Context(), g, name); err != nil || held != c.want {
			t.Errorf("%s, %s: held %t, %v", name, c.why, held, err)
		}
	}
}
