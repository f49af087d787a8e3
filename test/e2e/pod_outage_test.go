//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// failurePolicyKey is by which the owner of a set says what becomes of pods while no webhook can inject it.
const failurePolicyKey = "kruisekit.dev/injection-failure-policy"

// podOutage creates pods before, during and after an outage of the manager.
type podOutage struct {
	*deployed
	namespace    string
	closed, open *v1beta1.SidecarSet

	table *strings.Builder
	rows  *tabwriter.Writer

	before, early, injected outcome
}

// newPodOutage creates the pods of the time before.
func (m *deployed) newPodOutage(t *testing.T) *podOutage {
	t.Helper()
	p := &podOutage{deployed: m, namespace: m.Namespace(t), table: &strings.Builder{}}
	p.closed, p.open = m.outageSet(t, p.namespace, "closed", nil), m.outageSet(t, p.namespace, "open",
		map[string]string{failurePolicyKey: "Ignore"})
	p.rows = tabwriter.NewWriter(p.table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(p.rows, "manager\tpods\tcreated\trefused\twith sidecar\tp50\tp99\tmax")
	p.run(t, "up", "warming", 50, nil)
	p.before = p.run(t, "up", "selected by nothing", 100, nil)
	// API servers compile what has changed for the sets when the first pods come.
	p.early, p.injected = p.run(t, "up", "first fail closed", 20, p.closed.Spec.Selector.MatchLabels), p.run(t, "up",
		"fail closed", 100, p.closed.Spec.Selector.MatchLabels)
	return p
}

func (p *podOutage) run(t *testing.T, when, what string, n int, labels map[string]string) outcome {
	t.Helper()
	o := p.createMany(t, p.namespace, what+"-"+when, n, labels)
	_, _ = fmt.Fprintf(p.rows, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n",
		when, what, o.created, o.refused, o.injected, o.at(50), o.at(99), o.at(100))
	return o
}

// away creates pods while no replica runs: those that nothing selects as ever, and others as the owners of their sets
// chose.
func (p *podOutage) away(t *testing.T) {
	t.Helper()
	away := p.run(t, "away", "selected by nothing", 100, nil)
	refused := p.run(t, "away", "fail closed", 5, p.closed.Spec.Selector.MatchLabels)
	admitted := p.run(t, "away", "fail open", 5, p.open.Spec.Selector.MatchLabels)
	for what, wrong := range map[string]bool{
		"a pod that nothing selects was refused":                  p.before.refused+away.refused > 0,
		"a pod that nothing selects was injected":                 p.before.injected+away.injected > 0,
		"a pod that is to be refused without a manager was not":   refused.refused != 5,
		"a pod that is to be created without a manager was not":   admitted.created != 5,
		"a pod has a sidecar that no replica can have injected":   admitted.injected > 0,
		"without a manager, pods that need none are created late": away.took[50] > 2*p.before.took[50]+5*time.Millisecond,
	} {
		if wrong {
			t.Error(what)
		}
	}
}

// back creates pods once the manager is back, and prints all figures.
func (p *podOutage) back(t *testing.T) {
	t.Helper()
	// A connection of the API server to a replica of before may be tried once more.
	eventually(t, func(ctx context.Context) error {
		return p.Client.Create(ctx, held(p.namespace, "probe", p.closed.Spec.Selector.MatchLabels), client.DryRunAll)
	})
	again, opened := p.run(t, "back", "fail closed", 20, p.closed.Spec.Selector.MatchLabels), p.run(t, "back", "fail open",
		20, p.open.Spec.Selector.MatchLabels)
	_ = p.rows.Flush()
	t.Logf("creation of pods:\n%s", p.table)
	if n := p.early.injected + p.injected.injected + again.injected + opened.injected; n != 160 {
		t.Errorf("%d pods were injected, want 160", n)
	}
	eventually(t, func(ctx context.Context) error {
		var set v1beta1.SidecarSet
		if err := p.Client.Get(ctx, client.ObjectKeyFromObject(p.closed), &set); err != nil {
			return err
		}
		if set.Status.MatchedPods != 140 {
			return fmt.Errorf("%+v, want 140 matched", set.Status)
		}
		return nil
	})
}

func (m *deployed) outageSet(t *testing.T, namespace, name string, annotations map[string]string) *v1beta1.SidecarSet {
	t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name, Annotations: annotations}}
	set.Spec = v1beta1.SidecarSetSpec{
		Selector:          &metav1.LabelSelector{MatchLabels: map[string]string{"outage": name}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		Containers:        []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: "none"}}},
	}
	m.install(t, set)
	return set
}

// outcome of many creations.
type outcome struct {
	created, refused, injected int
	took                       map[int]time.Duration // by percentile
}

func (o outcome) at(percentile int) time.Duration {
	return o.took[percentile].Round(time.Millisecond / 10)
}

// createMany creates pods one after the other.
func (m *deployed) createMany(t *testing.T, namespace, name string, n int, labels map[string]string) outcome {
	t.Helper()
	o := outcome{took: map[int]time.Duration{}}
	var took []time.Duration
	for i := range n {
		pod := held(namespace, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), i), labels)
		begin := time.Now()
		err := m.Client.Create(t.Context(), pod)
		took = append(took, time.Since(begin))
		switch {
		case err != nil && labels == nil:
			t.Errorf("%s: %v", pod.Name, err)
			o.refused++
		case err != nil:
			o.refused++
		default:
			o.created++
		}
		if err == nil && pod.Annotations[kruise.SidecarSetInjectedListKey] != "" {
			o.injected++
		}
	}
	slices.Sort(took)
	for _, p := range []int{50, 99, 100} {
		o.took[p] = took[max(0, (len(took)*p+99)/100-1)]
	}
	return o
}
