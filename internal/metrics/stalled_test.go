package metrics

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/stored"
)

func setKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps.example.com", Version: "v1", Kind: "Set"}
}

// set is an object with its generations and, unless empty, a condition Stalled.
func set(namespace, name string, generation, observed int64, stalled string) *unstructured.Unstructured {
	o := stored.Untyped(setKind())
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetGeneration(generation)
	status := map[string]any{}
	if observed > 0 {
		status["observedGeneration"] = observed
	}
	if s, reason, is := strings.Cut(stalled, " "); is {
		status["conditions"] = []any{
			"odd", map[string]any{"type": "Progressing"}, map[string]any{"type": "Stalled", "status": s, "reason": reason},
		}
	}
	o.Object["status"] = status
	stored.Pack(o) // as the cache does
	return o
}

// bench is a follower with a clock that the test moves.
type bench struct {
	*Follower

	now      time.Time
	registry *prometheus.Registry
}

func newBench(t *testing.T, o StalledOptions) *bench {
	t.Helper()
	b := &bench{now: time.Unix(1_800_000_000, 0), registry: prometheus.NewRegistry()}
	m, err := RegisterStalled(b.registry)
	if err != nil {
		t.Fatal(err)
	}
	o.Now = func() time.Time { return b.now }
	b.Follower = m.Follow(nil, setKind(), o)
	b.begin()
	return b
}

// values are all values, by their labels.
func (b *bench) values(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			key := strings.TrimPrefix(family.GetName(), "kruisekit_")
			for _, label := range m.GetLabel() {
				key += " " + label.GetValue()
			}
			values[key] = m.GetGauge().GetValue()
		}
	}
	return values
}

const oldest = "oldest_unobserved_generation_seconds Set"

// Objects of one name in two namespaces count for themselves, and no longer when they go on or are gone.
func TestStalled(t *testing.T) {
	b := newBench(t, StalledOptions{})
	check := func(why string, want map[string]float64) {
		t.Helper()
		want = maps.Clone(want)
		want[oldest] = 0
		if diff := cmp.Diff(want, b.values(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
	for _, namespace := range []string{"a", "b", "c"} {
		b.put(set(namespace, "web", 1, 1, "True ImagePullFailed"))
	}
	b.put(set("a", "db", 1, 1, "Unknown UpdateLimited"))
	b.put(set("a", "ui", 1, 1, "False Fine"))
	check("three pull", map[string]float64{
		"workloads_stalled Set ImagePullFailed True": 3, "workloads_stalled Set UpdateLimited Unknown": 1,
	})
	deleted := set("b", "web", 2, 1, "True ImagePullFailed")
	deleted.SetDeletionTimestamp(&metav1.Time{Time: b.now})
	b.put(deleted)
	b.put(set("a", "db", 1, 1, ""))
	check("one is being deleted, one goes on", map[string]float64{"workloads_stalled Set ImagePullFailed True": 2})
	b.remove(set("a", "web", 1, 1, ""))
	b.remove(set("c", "web", 1, 1, ""))
	check("all are gone", map[string]float64{})
	if n := len(b.metrics.kinds["Set"].objects); n > 0 {
		t.Errorf("%d objects are kept that do not stand still", n)
	}
}

// The age is that of the spec that has waited longest for its status, and not of the last change.
func TestOldestGeneration(t *testing.T) {
	b := newBench(t, StalledOptions{})
	b.put(set("a", "web", 1, 0, ""))
	b.now = b.now.Add(time.Minute)
	b.put(set("a", "db", 4, 3, ""))
	b.put(set("a", "web", 2, 0, ""))
	b.now = b.now.Add(time.Minute)
	if got := b.values(t)[oldest]; got != 120 {
		t.Errorf("the oldest is %v seconds old, want 120", got)
	}
	b.put(set("a", "web", 2, 2, ""))
	if got := b.values(t)[oldest]; got != 60 {
		t.Errorf("the other one is %v seconds old, want 60", got)
	}
	b.put(set("a", "db", 4, 4, ""))
	if got := b.values(t)[oldest]; got != 0 {
		t.Errorf("without one: %v", got)
	}
	b.end()
	if got := b.values(t); len(got) > 0 {
		t.Errorf("after the end: %v", got)
	}
}

// A kind without observedGeneration has no age, and a writer of statuses makes no more series than the bound.
func TestBounds(t *testing.T) {
	b := newBench(t, StalledOptions{NoGenerations: true})
	for i := range 1000 {
		b.put(set("a", fmt.Sprint(i), 2, 0, fmt.Sprintf("True Reason%d", i)))
	}
	b.put(set("a", "long", 2, 0, "True "+strings.Repeat("x", mostLetters+1)))
	values := b.values(t)
	if len(values) != mostReasons+1 || values["workloads_stalled Set other True"] != 1001-mostReasons {
		t.Errorf("%d series, %v others", len(values), values["workloads_stalled Set other True"])
	}
}

// Parts of a process share the metrics, also a kind that reports by itself.
func TestShared(t *testing.T) {
	b := newBench(t, StalledOptions{NoGenerations: true})
	again, err := RegisterStalled(b.registry)
	if err != nil || again != b.metrics {
		t.Fatalf("other metrics, %v", err)
	}
	name := types.NamespacedName{Name: "proxies"}
	again.Set("SidecarSet", name, Reason{Status: "Unknown", Code: "UpdateLimited"})
	if diff := cmp.Diff(map[string]float64{"workloads_stalled SidecarSet UpdateLimited Unknown": 1},
		b.values(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sidecars := again.Follow(nil, schema.GroupVersionKind{Kind: "SidecarSet"}, StalledOptions{
		NoGenerations: true, NoCondition: true,
	})
	sidecars.put(set("", "proxies", 2, 2, ""))
	if got := b.values(t); len(got) != 1 {
		t.Errorf("an event of the object takes the reason back: %v", got)
	}
	again.Set("SidecarSet", name, Reason{})
	if got := b.values(t); len(got) > 0 {
		t.Errorf("after its end: %v", got)
	}
	if unexported, err := RegisterStalled(nil); err != nil || unexported == b.metrics {
		t.Errorf("without a registerer: %v", err)
	}
}
