//go:build envtest

package compat

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

// TestFirstPods: a set and pods that are applied at once give pods with sidecars, with and without a leader.
func TestFirstPods(t *testing.T) {
	t.Parallel()
	g := newPodGround(t)
	t.Run("NoLeader", func(t *testing.T) { testNoLeader(t, g) })
	t.Run("DryRun", func(t *testing.T) { testDryRun(t, g) })
	t.Run("Unwritable", func(t *testing.T) { testUnwritable(t, g) })
	t.Run("Leader", func(t *testing.T) { testLeader(t, g) })
	t.Run("Many", func(t *testing.T) { testMany(t, g) })
	t.Run("Update", func(t *testing.T) { testUpdate(t, g) })
}

func (g *podGround) named(t *testing.T, name string) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := g.Client.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// provisional returns the names of the provisional entries.
func (g *podGround) provisional(t *testing.T) []string {
	t.Helper()
	return provisional(g.named(t, scope.ProvisionalConfiguration))
}

// provisional returns the names of the provisional entries.
func provisional(c *admissionregistrationv1.MutatingWebhookConfiguration) []string {
	var names []string
	for i := range c.Webhooks {
		if scope.IsProvisional(c.Webhooks[i].Name) {
			names = append(names, c.Webhooks[i].Name)
		}
	}
	return names
}

func newSidecarSet(name, app string) *appsv1beta1.SidecarSet {
	set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	set.Spec.Containers = []appsv1beta1.SidecarContainer{{Container: corev1.Container{Name: name, Image: "sidecar"}}}
	return set
}

// create makes a set, which goes with the test, and says how long that took.
func (g *podGround) create(t *testing.T, set *appsv1beta1.SidecarSet) time.Duration {
	t.Helper()
	began := time.Now()
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(g.Client.Delete(context.WithoutCancel(t.Context()), set)); err != nil {
			t.Error(err)
		}
	})
	return took
}

// injected wants a pod of an app, created now, to have one container of its own and those of the sets.
func (g *podGround) injected(t *testing.T, namespace, app string, sets ...string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-", Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}},
	}
	if err := g.Client.Create(t.Context(), pod); err != nil {
		t.Errorf("pod of %s: %v", app, err)
		return
	}
	var got []string
	for _, c := range pod.Spec.Containers {
		if c.Name != "main" {
			got = append(got, c.Name)
		}
	}
	if !slices.Equal(got, sets) {
		t.Errorf("a pod of %s has %q, want %q", app, got, sets)
	}
}

func testNoLeader(t *testing.T, g *podGround) {
	namespace := g.Namespace(t)
	for i := range 5 {
		name := fmt.Sprintf("alone-%d", i)
		g.create(t, newSidecarSet(name, name))
		g.injected(t, namespace, name, name)
	}
	if w := g.warned(); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
	if n := len(g.provisional(t)); n != 5 {
		t.Errorf("%d entries for 5 sets", n)
	}
}

// A set that is only tried leaves no trace, and neither does one that is refused, or that selects nothing.
func testDryRun(t *testing.T, g *podGround) {
	before := g.named(t, scope.ProvisionalConfiguration).ResourceVersion
	if err := g.Client.Create(t.Context(), newSidecarSet("dry", "dry"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	refused := newSidecarSet("refused", "refused")
	refused.Spec.Containers[0].Name = "No Name"
	if err := g.Client.Create(t.Context(), refused); !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
	paused := newSidecarSet("paused", "paused")
	paused.Spec.InjectionStrategy.Paused = true
	g.create(t, paused)
	if after := g.named(t, scope.ProvisionalConfiguration).ResourceVersion; after != before {
		t.Errorf("the configuration was written: %q", g.provisional(t))
	}
}

// A set that cannot be covered is stored all the same, with a warning. A configuration that was deleted is created.
func testUnwritable(t *testing.T, g *podGround) {
	g.warned()
	large := newSidecarSet("large", "large")
	apps := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn}
	apps.Values = strings.Fields(strings.Trim(fmt.Sprint(rand.Perm(8000)), "[]"))
	large.Spec.Selector.MatchLabels, large.Spec.Selector.MatchExpressions = nil, []metav1.LabelSelectorRequirement{apps}
	g.create(t, large)
	if w := g.warned(); len(w) != 1 || !strings.Contains(w[0], "may go without these sidecars") ||
		!strings.Contains(w[0], "32768 bytes") {
		t.Errorf("warnings %q", w)
	}
	if err := g.Client.Delete(t.Context(), g.named(t, scope.ProvisionalConfiguration)); err != nil {
		t.Fatal(err)
	}
	g.create(t, newSidecarSet("first", "first"))
	g.injected(t, g.Namespace(t), "first", "first")
	if w := g.warned(); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
}

// blank puts the configurations of pods back to what is deployed.
func (g *podGround) blank(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, name := range []string{scope.DefaultConfiguration, scope.ProvisionalConfiguration} {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(g.Client.Delete(ctx, c)); err != nil {
			t.Error(err)
		}
		if err := g.Client.Create(ctx, c.DeepCopy()); err != nil {
			t.Error(err)
		}
	}
}

// states are the writes of a configuration, from now on.
func (g *podGround) states(t *testing.T, name string) func() []*admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	watching, err := client.NewWithWatch(g.Config, client.Options{Scheme: g.options.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	now := g.named(t, name)
	events, err := watching.Watch(t.Context(), &admissionregistrationv1.MutatingWebhookConfigurationList{},
		&client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: now.ResourceVersion, FieldSelector: "metadata.name=" + now.Name},
		})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	all := []*admissionregistrationv1.MutatingWebhookConfiguration{now}
	go func() {
		for e := range events.ResultChan() {
			if c, is := e.Object.(*admissionregistrationv1.MutatingWebhookConfiguration); is {
				mu.Lock()
				all = append(all, c)
				mu.Unlock()
			}
		}
	}()
	return func() []*admissionregistrationv1.MutatingWebhookConfiguration {
		last := g.named(t, name).ResourceVersion
		reviewtest.Until(t, "the last write is not seen", func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if all[len(all)-1].ResourceVersion != last {
				return errors.New("not yet")
			}
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func (g *podGround) swept(t *testing.T) {
	t.Helper()
	reviewtest.Until(t, "entries that were written ahead are left", func(context.Context) error {
		if left := g.provisional(t); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
}

func testLeader(t *testing.T, g *podGround) {
	g.lead(t)
	namespace := g.Namespace(t)
	planned, early := g.states(t, scope.DefaultConfiguration), g.states(t, scope.ProvisionalConfiguration)
	const tries = 20
	var took []time.Duration
	for i := range tries {
		name := fmt.Sprintf("led-%d", i)
		took = append(took, g.create(t, newSidecarSet(name, name)))
		g.injected(t, namespace, name, name)
	}
	if w := g.warned(); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
	g.swept(t)
	for i := range tries {
		name := fmt.Sprintf("led-%d", i)
		g.injected(t, namespace, name, name)
	}
	byWebhook, byLeader := 0, len(planned())-1
	for i, all := 1, early(); i < len(all); i++ {
		if len(provisional(all[i])) > len(provisional(all[i-1])) {
			byWebhook++
			continue
		}
		byLeader++
	}
	slices.Sort(took)
	t.Logf(
		"the creation of a set took %s in the middle, %s at most; %d writes by the webhook, %d by the leader for %d sets",
		took[tries/2], took[tries-1], byWebhook, byLeader, tries)
	if byWebhook != tries || byLeader > 2*tries {
		t.Errorf("%d writes by the webhook and %d by the leader for %d sets", byWebhook, byLeader, tries)
	}
}

// A set that begins to select pods has those at once, and what changes nothing about that writes nothing.
func testUpdate(t *testing.T, g *podGround) {
	g.lead(t)
	namespace := g.Namespace(t)
	set := newSidecarSet("moving", "from")
	set.Spec.InjectionStrategy.Paused = true
	g.create(t, set)
	set.Spec.InjectionStrategy.Paused = false
	if err := g.Client.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	g.injected(t, namespace, "from", "moving")
	for i := range 5 {
		app := fmt.Sprintf("to-%d", i)
		set.Spec.Selector.MatchLabels["app"] = app
		if err := g.Client.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		g.injected(t, namespace, app, "moving")
	}
	g.swept(t)
	before, early := g.named(t, scope.DefaultConfiguration).ResourceVersion, g.named(t,
		scope.ProvisionalConfiguration).ResourceVersion
	set.Spec.Containers[0].Image = "sidecar:2"
	if err := g.Client.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if g.named(t, scope.DefaultConfiguration).ResourceVersion != before ||
		g.named(t, scope.ProvisionalConfiguration).ResourceVersion != early {
		t.Error("a new image is written into the entries")
	}
}

// Sets that come at the same time are not in each other's way.
func testMany(t *testing.T, g *podGround) {
	g.lead(t)
	namespace := g.Namespace(t)
	const many = 20
	took := make([]time.Duration, many)
	var all sync.WaitGroup
	for i := range many {
		all.Add(1)
		go func() {
			defer all.Done()

			name := fmt.Sprintf("many-%d", i)
			took[i] = g.create(t, newSidecarSet(name, name))
			g.injected(t, namespace, name, name)
		}()
	}
	all.Wait()
	if w := g.warned(); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
	slices.Sort(took)
	t.Logf("the creation of one of %d sets took %s in the middle, %s at most", many, took[many/2], took[many-1])
	g.swept(t)
}
