package workloadspread_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

const one = appsv1beta1.WorkloadSpreadVersionIgnored

// TestAdmit: one pod, the subset that it gets, and what that costs.
func TestAdmit(t *testing.T) {
	deployment := func(c *cluster) {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web-85b", UID: "uid-web-85b"}}
		set.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web", Controller: ptr.To(true),
		}}
		c.put(set)
	}
	replicaSetPod := func() *corev1.Pod {
		p := pod("", "apps/v1", "ReplicaSet", "web-85b")
		p.Labels["pod-template-hash"] = "85b"
		return p
	}
	for name, c := range map[string]struct {
		spread  *subset.Spread
		objects func(*cluster)
		pod     *corev1.Pod
		want    string
		cost    string
		version string
		writes  int32
		reads   int32
	}{
		"a pod without a name is recorded by its request": {
			spread: spread("s", "CloneSet", 1, -1), pod: cloned(""), want: "a", cost: "200", version: one, writes: 1,
		},
		"a pod of the target is recorded": {
			spread: spread("s", "CloneSet", 1, -1), pod: cloned("web-x"), want: "a", cost: "200", version: one, writes: 1,
		},
		"a pod without a controller stays": {
			spread: spread("s", "CloneSet", 1), pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		},
		"a pod of a Deployment has a version": {
			spread:  spread("s", "Deployment", 1, 1),
			objects: deployment,
			pod:     replicaSetPod(),
			want:    "a",
			cost:    "200",
			version: "85b",
			writes:  1,
		},
		"a ReplicaSet that is gone": {
			spread: spread("s", "Deployment", 1, 1), pod: replicaSetPod(), reads: 1,
		},
		"a Job has no costs": {
			spread: spread("s", "Job", 1), pod: pod("x", "batch/v1", "Job", "web"), want: "a", version: one, writes: 1,
		},
		"an ordinal decides for a StatefulSet": {
			spread: spread("s", "StatefulSet", 1, 1), pod: pod("web-1", "apps/v1", "StatefulSet", "web"), want: "b",
		},
		"the filter excludes the pod": {
			spread: func() *subset.Spread {
				ws := spread("s", "CloneSet", 1)
				ws.Spec.TargetFilter = &appsv1beta1.TargetFilter{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "worker"}},
				}
				return ws
			}(),
			pod: cloned("x"),
		},
		"a filter without a selector, as in OpenKruise": {
			spread: func() *subset.Spread {
				ws := spread("s", "CloneSet", 1)
				ws.Spec.TargetFilter = &appsv1beta1.TargetFilter{ReplicasPathList: []string{"spec.replicas"}}
				return ws
			}(),
			pod: cloned("x"),
		},
		"a spread that is being deleted": {
			spread: func() *subset.Spread {
				ws := spread("s", "CloneSet", 1)
				ws.DeletionTimestamp, ws.Finalizers = &metav1.Time{Time: time.Unix(0, 0)}, []string{"x/y"}
				return ws
			}(),
			pod: cloned("x"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			s.put(c.spread)
			if c.objects != nil {
				c.objects(s)
			}
			d, x := s.replica(workloadspread.Options{})
			s.show(x, "s")
			next := s.admit(d, c.pod, "request-1")
			if subsetOf(next) != c.want || next != nil && next.Annotations[corev1.PodDeletionCost] != c.cost {
				t.Errorf("got %+v", next)
			}
			if s.writes.Load() != c.writes || s.reads.Load() != c.reads {
				t.Errorf("%d writes, %d live reads", s.writes.Load(), s.reads.Load())
			}
			if list := s.stored("s").Status.VersionedSubsetStatuses; c.version != "" &&
				len(list[c.version][0].CreatingPods) != 1 || c.version == "" && len(list) > 0 {
				t.Errorf("books %+v", list)
			}
			again := s.admit(d, c.pod, "request-1") // the API server sends a pod again
			if diff := cmp.Diff(next, again); diff != "" || s.writes.Load() != c.writes {
				t.Errorf("again: %d writes,\n%s", s.writes.Load(), diff)
			}
			if next != nil { // the API server calls a second time, with what the first call has made
				if third := s.admit(d, next, "request-2"); third != nil || s.writes.Load() != c.writes {
					t.Errorf("a second call makes of the pod %+v, %d writes", third, s.writes.Load())
				}
			}
		})
	}
}

// TestAdmitStale: a cache that lags takes no place that is gone.
func TestAdmitStale(t *testing.T) {
	s := newCluster(t)
	s.put(spread("s", "CloneSet", 1, -1))
	d1, x1 := s.replica(workloadspread.Options{})
	d2, x2 := s.replica(workloadspread.Options{})
	s.show(x1, "s")
	s.show(x2, "s")
	if got := subsetOf(s.admit(d1, cloned("p1"), "1")); got != "a" {
		t.Error(got)
	}
	if got := subsetOf(s.admit(d2, cloned("p2"), "2")); got != "b" || s.writes.Load() != 2 || s.reads.Load() != 1 {
		t.Errorf("%s, %d writes, %d reads", got, s.writes.Load(), s.reads.Load())
	}
	if got := subsetOf(s.admit(d1, cloned("p3"), "3")); got != "b" || s.writes.Load() != 2 {
		t.Errorf("%s: a replica forgets its own write", got)
	}
}

// TestFailures: no pod is rejected because its record cannot be written.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		fail    error
		reading error
		limits  []int32
		want    string
		timeout time.Duration
		latency time.Duration
	}{
		"a failed write": {fail: errors.New("etcd is away"), limits: []int32{1, -1}, want: "b"},
		"conflicts without end": {
			fail:    apierrors.NewConflict(schema.GroupResource{}, "s", nil),
			limits:  []int32{1, -1},
			want:    "b",
			timeout: 2 * time.Second,
		},
		"a conflict, and a failed read": {
			fail:    apierrors.NewConflict(schema.GroupResource{}, "s", nil),
			reading: errors.New("connection reset"),
			limits:  []int32{1, -1},
			want:    "b",
		},
		"a spread that is gone": {
			fail: apierrors.NewNotFound(schema.GroupResource{}, "s"), limits: []int32{1, 1},
		},
		"an API server that does not answer": {
			limits: []int32{1, -1}, latency: 3 * time.Second, timeout: time.Second, want: "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t)
			s.put(spread("s", "CloneSet", c.limits...))
			s.latency = c.latency
			if c.fail != nil {
				s.fail = func() error { return c.fail }
			}
			if c.reading != nil {
				s.failRead = func() error { return c.reading }
			}
			d, x := s.replica(workloadspread.Options{})
			s.show(x, "s")
			ctx := t.Context()
			if c.timeout > 0 {
				bounded, cancel := context.WithTimeout(ctx, c.timeout)
				defer cancel()
				ctx = bounded
			}
			next, err := d.Admit(ctx, types.NamespacedName{Namespace: shop, Name: "1"}, cloned("p"))
			if err != nil || subsetOf(next) != c.want {
				t.Errorf("%v, %q", err, subsetOf(next))
			}
		})
	}
}

// TestDepart: the deletion of a pod opens its place for the next one, and is recorded once.
func TestDepart(t *testing.T) {
	s := newCluster(t)
	ws := spread("s", "CloneSet", 1, -1)
	ws.Status.VersionedSubsetStatuses = map[string][]subset.Entry{one: {
		{Name: "a", Replicas: 1}, {Name: "b", MissingReplicas: -1},
	}}
	s.put(ws)
	d, x := s.replica(workloadspread.Options{})
	s.show(x, "s")
	leaves := cloned("p1")
	leaves.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": `{"name":"s","subset":"a"}`}
	foreign := pod("p9", "apps/v1", "StatefulSet", "db")
	foreign.Annotations = leaves.Annotations
	for _, p := range []*corev1.Pod{leaves, leaves, foreign} {
		if err := d.Depart(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if s.writes.Load() != 1 {
		t.Errorf("%d writes", s.writes.Load())
	}
	if got := subsetOf(s.admit(d, cloned("p2"), "2")); got != "a" {
		t.Error(got)
	}
	if got := subsetOf(s.admit(d, cloned("p3"), "3")); got != "b" {
		t.Error(got)
	}
}

// TestPercentages: the replicas of the target are read for percentages alone, and those of a Job live.
func TestPercentages(t *testing.T) {
	s := newCluster(t)
	ws := spread("s", "Job", 0, -1)
	ws.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromString("50%"))
	ws.Spec.TargetFilter = &appsv1beta1.TargetFilter{
		Selector: &metav1.LabelSelector{}, ReplicasPathList: []string{"spec.parallelism"},
	}
	s.put(ws)
	d, x := s.replica(workloadspread.Options{})
	s.show(x, "s")
	if got := subsetOf(s.admit(d, pod("p0", "batch/v1", "Job", "web"), "0")); got != "b" { // no Job, no replicas
		t.Error(got)
	}
}

// TestIdle: a pod of a namespace without a WorkloadSpread costs nothing.
func TestIdle(t *testing.T) {
	s := newCluster(t)
	d, _ := s.replica(workloadspread.Options{})
	p := cloned("p")
	p.Namespace = "other"
	if n := testing.AllocsPerRun(100, func() {
		if next, err := d.Admit(t.Context(), types.NamespacedName{
			Namespace: "other", Name: "1",
		}, p); next != nil || err != nil {
			t.Fatal(next, err)
		}
	}); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}

// TestBurst: a thousand pods at a concurrency of 50 through two replicas, whose caches are always late. No pod is
// rejected, the distribution is exact, and the writes are few.
func TestBurst(t *testing.T) {
	const pods, concurrency = 1000, 50
	s := newCluster(t)
	s.latency = 3 * time.Millisecond
	s.put(spread("s", "CloneSet", 300, 400, -1))
	var allocators []*workloadspread.Allocator
	for range 2 {
		d, x := s.replica(workloadspread.Options{})
		s.show(x, "s")
		allocators = append(allocators, d)
	}
	var mu sync.Mutex
	got := map[string]int{}
	var all sync.WaitGroup
	next := make(chan int)
	for range concurrency {
		all.Add(1)
		go func() {
			defer all.Done()

			for i := range next {
				p, err := allocators[i%2].Admit(t.Context(), types.NamespacedName{
					Namespace: shop, Name: fmt.Sprint(i),
				}, cloned(fmt.Sprintf("web-%d", i)))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				got[subsetOf(p)]++
				mu.Unlock()
			}
		}()
	}
	for i := range pods {
		next <- i
	}
	close(next)
	all.Wait()
	t.Logf("%d writes, %d live reads", s.writes.Load(), s.reads.Load())
	if diff := cmp.Diff(map[string]int{"a": 300, "b": 400, "c": 300}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.writes.Load() > pods/10 {
		t.Errorf("%d writes", s.writes.Load())
	}
	list := s.stored("s").Status.VersionedSubsetStatuses[one]
	if len(list[0].CreatingPods) != 300 || len(list[1].CreatingPods) != 400 || list[0].MissingReplicas != 0 {
		t.Errorf("the books have %d and %d pods", len(list[0].CreatingPods), len(list[1].CreatingPods))
	}
}
