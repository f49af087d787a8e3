//go:build envtest

package pod_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/internal/scope"
)

// What the webhook costs whoever creates a pod, through an API server: pods that three of a hundred sets select, pods that none
// does, and pods that have by themselves what the first ones get, by turns. Times are the machine's as much as ours: without
// -latency=5ms, on a quiet one, the proportion is judged.
func testLatency(t *testing.T, g *ground) {
	g.have(t, scope.Input{Owned: true, Launch: true}, installed(t, 100, 3)...)
	l := &latency{ground: g, namespace: g.Namespace(t), took: map[string][]time.Duration{}}
	template := &corev1.Pod{}
	if err := yaml.Unmarshal([]byte(usual), template); err != nil {
		t.Fatal(err)
	}
	template.GenerateName, template.OwnerReferences, template.ManagedFields = "", nil, nil
	for range 20 { // connections, and what is compiled once
		l.create(t, "warm", template, "web")
	}
	whole := l.create(t, "warm", template, "web")
	if len(whole.Spec.Containers) != 6 {
		t.Fatalf("a pod has %d containers", len(whole.Spec.Containers))
	}
	whole.ObjectMeta = metav1.ObjectMeta{Labels: whole.Labels, Annotations: whole.Annotations}
	for range latencyPods {
		l.create(t, "injected", template, "web")
		l.create(t, "whole", whole, "nobody")
		l.create(t, "plain", template, "nobody")
	}
	for _, percent := range []int{50, 90, 99} {
		t.Logf("p%d: %s where three sidecars are injected, %s where they are there (%s less), %s without them", percent, l.at("injected", percent),
			l.at("whole", percent), l.at("injected", percent)-l.at("whole", percent), l.at("plain", percent))
	}
	if with, without := l.at("injected", 50), l.at("whole", 50); with > 5*without {
		t.Errorf("half of the pods take %s rather than %s", with, without)
	}
	if more := l.at("injected", 99) - l.at("whole", 99); *mostLatency > 0 && more > *mostLatency {
		t.Errorf("one in a hundred pods takes %s more", more)
	}
}

var mostLatency = flag.Duration("latency", 0, "how much longer the creation of a pod may take, at the 99th percentile; 0 is not judged")

const latencyPods = 150

type latency struct {
	*ground
	namespace string
	n         int
	took      map[string][]time.Duration
}

func (l *latency) create(t *testing.T, what string, template *corev1.Pod, app string) *corev1.Pod {
	t.Helper()
	p := template.DeepCopy()
	p.Namespace, p.Name, p.Labels["app"] = l.namespace, fmt.Sprint("p-", l.n), app
	l.n++
	begin := time.Now()
	if err := l.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	l.took[what] = append(l.took[what], time.Since(begin))
	return p
}

func (l *latency) at(what string, percent int) time.Duration {
	all := slices.Sorted(slices.Values(l.took[what]))
	return all[len(all)*percent/100-1].Round(time.Microsecond)
}
