package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/standin"
	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// deployed runs the reconciler beside the built-in controllers of a Deployment of three pods.
type deployed struct {
	*testing.T
	*objects.Model

	deployment *appsv1.Deployment
	// held has the policy hold changed templates.
	held bool
	// blind keeps the built-in controllers from observing anything.
	blind bool
	// namespace of the Deployment.
	namespace *corev1.Namespace
	// writes are those of the reconciler, by the kind of the object.
	writes map[string]int
}

func newDeployed(t *testing.T, changes ...func(*appsv1.Deployment)) *deployed {
	t.Helper()
	m := &deployed{
		T: t, Model: objects.NewModel(t, &appsv1.DeploymentList{}, appsv1.AddToScheme), held: true, writes: map[string]int{},
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
	}
	if err := m.Server.Create(t.Context(), m.namespace); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}, &appsv1.ReplicaSet{}} {
		if err := owned.Index(t.Context(), m.Server, object); err != nil {
			t.Fatal(err)
		}
	}
	m.restart(m.counting())
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Annotations: map[string]string{adapter.RolloutKey: "{}"},
	}}
	d.Spec.Replicas = ptr.To(int32(3))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	for _, change := range changes {
		change(d)
	}
	if err := m.Server.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	m.deployment = d
	m.Still()
	return m
}

// restart starts the reconciler again, with a client.
func (m *deployed) restart(c client.Client) {
	m.Helper()
	r, err := native.New(c, native.Options{Now: m.Now, Recorder: m.Server, Live: m.Live})
	if err != nil {
		m.Fatal(err)
	}
	builtIn := &standin.Deployments{Client: m.Server}
	m.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if m.blind {
			return r.Deployments().Reconcile(ctx, request)
		}
		if err := builtIn.Step(ctx, request.NamespacedName); err != nil {
			return reconcile.Result{}, err
		}
		return r.Deployments().Reconcile(ctx, request)
	})
}

// counting is the client of the reconciler.
func (m *deployed) counting() client.Client {
	var mu sync.Mutex // a pass writes pods in parallel
	count := func(verb string, o client.Object) {
		mu.Lock()
		defer mu.Unlock()
		m.writes[fmt.Sprintf("%s %T", verb, o)]++
	}
	return interceptor.NewClient(m.Server, interceptor.Funcs{
		Create: func(ctx context.Context, in client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			count("create", o)
			return in.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, in client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			count("delete", o)
			return in.Delete(ctx, o, opts...)
		},
		Patch: func(
			ctx context.Context, in client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			count("patch", o)
			return in.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, in client.Client, part string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			count("patch "+part+" of", o)
			return in.SubResource(part).Patch(ctx, o, p, opts...)
		},
	})
}

// change is a user's, which the policy may hold.
func (m *deployed) change(f func(*appsv1.Deployment)) {
	m.Helper()
	objects.Change(m.Model, m.deployment, func(d *appsv1.Deployment) {
		before := d.DeepCopy()
		f(d)
		if _, asks := adapter.Request(d, m.namespace); m.held && asks && adapter.Hold(before, d) != nil {
			d.Spec.Paused = true
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, adapter.HoldKey, fmt.Sprint(before.Generation))
		}
	})
}

// sets are the templates of all ReplicaSets, with how many pods each has.
func (m *deployed) sets() (all []string) {
	m.Helper()
	var list appsv1.ReplicaSetList
	if err := m.Server.List(m.Context(), &list); err != nil {
		m.Fatal(err)
	}
	for _, set := range list.Items {
		all = append(all, fmt.Sprintf("%s %d of %s", set.Annotations["deployment.kubernetes.io/revision"], *set.Spec.Replicas,
			set.Spec.Template.Spec.Containers[0].Image))
	}
	slices.Sort(all)
	return all
}

func (m *deployed) progress() (p native.Progress) {
	m.Helper()
	m.Look(m.deployment)
	if text := m.deployment.Annotations[native.StatusKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			m.Fatal(err)
		}
	}
	return p
}

func tag(tag string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:" + tag }
}

func TestDeployment(t *testing.T) {
	env := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}
	annotated := func(text string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations[adapter.RolloutKey] = text }
	}
	cases := map[string]struct {
		why     string
		with    func(*appsv1.Deployment)
		unheld  bool
		changes []func(*appsv1.Deployment)
		sets    []string
		kept    bool
		state   native.State
		paused  bool
		event   string
		// asks means that the namespace asks for rollouts in place.
		asks bool
	}{
		"image": {
			why:     "in place, in the same ReplicaSet, with a history",
			changes: []func(*appsv1.Deployment){tag("2")},
			sets:    []string{"1 0 of web:1", "2 3 of web:2"}, kept: true, state: native.StateComplete, event: "HoldEnded",
		},
		"env": {
			why:     "the built-in controller makes other pods",
			changes: []func(*appsv1.Deployment){env},
			sets:    []string{"1 0 of web:1", "2 3 of web:1"}, state: native.StateComplete, event: "HoldEnded",
		},
		"env, in place only": {
			why: "is reported, and the hold stays", with: annotated(`{"podUpdatePolicy":"InPlaceOnly"}`),
			changes: []func(*appsv1.Deployment){env},
			sets:    []string{"1 3 of web:1"}, kept: true, state: native.StateBlocked, paused: true, event: "NotInPlace",
		},
		"restart": {
			why: "asks for other pods",
			changes: []func(*appsv1.Deployment){func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
			}},
			sets: []string{"1 0 of web:1", "2 3 of web:1"}, state: native.StateComplete, event: "HoldEnded",
		},
		"not held": {
			why: "the built-in controller rolls out, and one event reports the reason", unheld: true,
			changes: []func(*appsv1.Deployment){tag("2")},
			sets:    []string{"1 0 of web:1", "2 3 of web:2"}, state: native.StateComplete, event: "NotHeld",
		},
		"paused by the user": {
			why: "is the mode without a policy", unheld: true,
			with:    func(d *appsv1.Deployment) { d.Spec.Paused = false },
			changes: []func(*appsv1.Deployment){func(d *appsv1.Deployment) { d.Spec.Paused = true }, tag("2"), tag("3")},
			sets:    []string{"1 0 of web:1", "2 0 of web:2", "3 3 of web:3"}, kept: true, paused: true,
			state: native.StateComplete,
		},
		"paused in the annotation": {
			why: "the hold stays", with: annotated(`{"paused":true}`), changes: []func(*appsv1.Deployment){tag("2")},
			sets: []string{"1 3 of web:1"}, kept: true, state: native.StatePaused, paused: true,
		},
		"invalid": {
			why: "the built-in controller is in charge", with: annotated(`{"partition":"all"}`),
			changes: []func(*appsv1.Deployment){tag("2")},
			sets:    []string{"1 0 of web:1", "2 3 of web:2"}, state: native.StateInvalid, event: "InvalidRollout",
		},
		"asks no more": {
			why: "the hold ends at once", with: annotated(`{"paused":true}`),
			changes: []func(*appsv1.Deployment){
				tag("2"), func(d *appsv1.Deployment) { delete(d.Annotations, adapter.RolloutKey) },
			},
			sets: []string{"1 0 of web:1", "2 3 of web:2"}, event: "HoldEnded",
		},
		"the namespace asks": {
			why: "for all of its Deployments", asks: true, with: func(d *appsv1.Deployment) { d.Annotations = nil },
			changes: []func(*appsv1.Deployment){tag("2")},
			sets:    []string{"1 0 of web:1", "2 3 of web:2"}, kept: true, state: native.StateComplete, event: "RolloutHeld",
		},
		"disabled": {
			why: "the annotation wins over the namespace", asks: true, with: annotated(adapter.Disabled),
			changes: []func(*appsv1.Deployment){tag("2")}, sets: []string{"1 0 of web:1", "2 3 of web:2"},
		},
		"an operator resets what it does not know": {
			why: "is not fought: the built-in controller rolls out, and an event reports it", with: annotated(`{"paused":true}`),
			changes: []func(*appsv1.Deployment){tag("2"), func(d *appsv1.Deployment) {
				d.Spec.Paused, d.Annotations = false, map[string]string{adapter.RolloutKey: "{}"}
			}},
			sets: []string{"1 0 of web:1", "2 3 of web:2"}, state: native.StateComplete, event: "NotHeld",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			with := c.with
			if with == nil {
				with = func(*appsv1.Deployment) {}
			}
			m := newDeployed(t, with)
			m.held = !c.unheld
			if c.asks {
				objects.Change(m.Model, m.namespace, func(n *corev1.Namespace) {
					metav1.SetMetaDataLabel(&n.ObjectMeta, adapter.RolloutKey, adapter.Enabled)
				})
			}
			before := uids(m.Pods())
			for _, change := range c.changes {
				m.change(change)
				m.Still()
			}
			if d := cmp.Diff(c.sets, m.sets()); d != "" {
				t.Errorf("%s: %s", c.why, d)
			}
			if kept := slices.Equal(before, uids(m.Pods())); kept != c.kept {
				t.Errorf("%s: the pods are the same: %v", c.why, kept)
			}
			if got := m.progress(); got.State != c.state {
				t.Errorf("%s: %+v", c.why, got)
			}
			_, held := m.deployment.Annotations[adapter.HoldKey]
			if m.deployment.Spec.Paused != c.paused || held && !c.paused {
				t.Errorf("%s: paused %v, %v", c.why, m.deployment.Spec.Paused, m.deployment.Annotations)
			}
			if c.event != "" && len(m.Server.Events(m.deployment, c.event)) == 0 {
				t.Errorf("%s: no event %s", c.why, c.event)
			}
		})
	}
}

// TestUnobserved: where the built-in controller never takes the ReplicaSet for that of the template, as for fields that
// this build does not know, the hold ends all the same.
func TestUnobserved(t *testing.T) {
	m := newDeployed(t)
	m.blind = true
	m.change(tag("2"))
	m.Eventually(func() error {
		if m.Look(m.deployment); m.deployment.Spec.Paused {
			return fmt.Errorf("held: %v, ReplicaSets %v", m.deployment.Annotations, m.sets())
		}
		return nil
	})
	if got := m.Server.Events(m.deployment, "HoldEnded"); len(got) != 1 || !strings.Contains(fmt.Sprint(got), "newer") {
		t.Errorf("events %v", got)
	}
}

// TestDeploymentWrites counts what a rollout in place costs: an image and a label for each pod, and for all of them the
// revision, the mark, the old template, the new one and the end of the hold, beside the annotation at each number of
// the status.
func TestDeploymentWrites(t *testing.T) {
	m := newDeployed(t)
	m.change(tag("2"))
	m.writes = map[string]int{}
	m.Still()
	status := m.writes["patch *v1.Deployment"] - 1
	want := map[string]int{
		"create *v1.ControllerRevision": 1, "patch *v1.Pod": 6, "create *v1.ReplicaSet": 1, "patch *v1.ReplicaSet": 2,
		"patch *v1.Deployment": 1 + status,
	}
	if d := cmp.Diff(want, m.writes); d != "" || status > 9 {
		t.Errorf("%d writes of the status, %s", status, d)
	}
	m.writes = map[string]int{}
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	_, err := m.Reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: name})
	if err != nil || len(m.writes) > 0 {
		t.Errorf("a Deployment that has nothing to do costs %v, %v", m.writes, err)
	}
}
