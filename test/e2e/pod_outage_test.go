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
	"github.com/kruisekit/kruisekit/api/pub"
)

// failurePolicyKey is by which the owner of a set says what becomes of pods while nobody can inject it.
const failurePolicyKey = "kruisekit.dev/injection-failure-policy"

// Without a manager, pods that nothing selects are created as ever, and others as the owners of their sets chose.
func (m *deployed) testPodOutage(t *testing.T) {
	namespace := m.Namespace(t)
	closed, open := m.outageSet(t, namespace, "closed", nil), m.outageSet(t, namespace, "open", map[string]string{failurePolicyKey: "Ignore"})
	table := &strings.Builder{}
	w := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "manager\tpods\tcreated\trefused\twith sidecar\tp50\tp99\tmax")
	run := func(when, what string, n int, labels map[string]string) outcome {
		o := m.createMany(t, namespace, what+"-"+when, n, labels)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", when, what, o.created, o.refused, o.injected, o.at(50), o.at(99), o.at(100))
		return o
	}
	run("up", "warming", 50, nil)
	before := run("up", "selected by nothing", 100, nil)
	// API servers compile what has changed for the sets when the first pods come.
	early, injected := run("up", "first fail closed", 20, closed.Spec.Selector.MatchLabels), run("up", "fail closed", 100, closed.Spec.Selector.MatchLabels)
	m.scale(t, 0)
	eventually(t, func(context.Context) error {
		if left := m.pods(t); len(left) > 0 {
			return fmt.Errorf("%d replicas are still there", len(left))
		}
		return nil
	})
	away := run("away", "selected by nothing", 100, nil)
	refused := run("away", "fail closed", 5, closed.Spec.Selector.MatchLabels)
	let := run("away", "fail open", 5, open.Spec.Selector.MatchLabels)
	m.scale(t, 2)
	eventually(t, m.ready)
	// A connection of the API server to a replica of before may be tried once more.
	eventually(t, func(ctx context.Context) error {
		return m.Client.Create(ctx, held(namespace, "probe", closed.Spec.Selector.MatchLabels), client.DryRunAll)
	})
	again, opened := run("back", "fail closed", 20, closed.Spec.Selector.MatchLabels), run("back", "fail open", 20, open.Spec.Selector.MatchLabels)
	_ = w.Flush()
	t.Logf("creation of pods:\n%s", table)

	for what, wrong := range map[string]bool{
		"a pod that nothing selects was refused":                  before.refused+away.refused > 0,
		"a pod that nothing selects was injected":                 before.injected+away.injected > 0,
		"a pod was not injected":                                  early.injected+injected.injected+again.injected+opened.injected != 160,
		"a pod that is to be refused without a manager was not":   refused.refused != 5,
		"a pod that is to be created without a manager was not":   let.created != 5,
		"a pod has a sidecar that nobody can have injected":       let.injected > 0,
		"without a manager, pods that need none are created late": away.took[50] > 2*before.took[50]+5*time.Millisecond,
	} {
		if wrong {
			t.Error(what)
		}
	}
	eventually(t, func(ctx context.Context) error {
		var set v1beta1.SidecarSet
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(closed), &set); err != nil {
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
		if err == nil && pod.Annotations[pub.SidecarSetInjectedListKey] != "" {
			o.injected++
		}
	}
	slices.Sort(took)
	for _, p := range []int{50, 99, 100} {
		o.took[p] = took[max(0, (len(took)*p+99)/100-1)]
	}
	return o
}
