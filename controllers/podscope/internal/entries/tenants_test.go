package entries_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/controllers/podscope/internal/entries"
	"github.com/kruisekit/kruisekit/controllers/podscope/internal/steady"
	"github.com/kruisekit/kruisekit/internal/scope"
)

const (
	// tick is the time between two changes of a hostile tenant.
	tick = 100 * time.Millisecond
	// promised is when a selection is in force.
	promised = time.Second
	// calm is when only the stored objects are in force: 5 minutes, rounded up to 10 seconds, and a write that fails.
	calm = 5*time.Minute + 10*time.Second + promised
)

// object is stored by a tenant, and selects the pods of a workload of its namespace.
type object struct{ kind, namespace, name string }

// workload is how an entry names it.
func (o object) workload() string { return o.namespace + "/StatefulSet/" + o.name }

// closed reports whether pods of the workload must not be created without the webhook.
func (o object) closed() bool { return o.kind == "Required" }

func (o object) stored() *unstructured.Unstructured {
	spec := map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": o.name}}
	version, kind := "apps.kruise.io/v1beta1", o.kind
	switch o.kind {
	case "Required":
		kind, spec["requiredPersistentTopology"] = "PersistentPodState", map[string]any{"nodeTopologyKeys": []any{"zone"}}
	case "PersistentPodState":
		spec["preferredPersistentTopology"] = []any{map[string]any{
			"weight": int64(1), "preference": map[string]any{"nodeTopologyKeys": []any{"zone"}},
		}}
	case "PodUnavailableBudget":
		version = "policy.kruise.io/v1beta1"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": o.namespace, "name": o.name},
		"spec": spec,
	}}
}

// tenants change their objects, and a leader keeps the entries.
type tenants struct {
	*ground
	*rand.Rand

	// objects by the time from which they are stored.
	objects map[object]time.Time
	changed bool
	// wake is when the leader looks again without an event; zero for never.
	wake time.Time
	// wrote are the times of writes.
	wrote []time.Time
}

func newTenants(t *testing.T, seed uint64) *tenants {
	t.Helper()
	w := &tenants{ground: newGround(t), Rand: rand.New(rand.NewPCG(seed, 1)), objects: map[object]time.Time{}}
	w.Pods = named(name)
	return w
}

func (w *tenants) create(o object) {
	if _, is := w.objects[o]; !is {
		w.objects[o], w.changed = w.Now, true
	}
}

func (w *tenants) remove(o object) {
	if _, is := w.objects[o]; is {
		w.changed = true
		delete(w.objects, o)
	}
}

// in returns the objects of a namespace, sorted.
func (w *tenants) in(namespace string) []object {
	all := slices.DeleteFunc(slices.Collect(maps.Keys(w.objects)), func(o object) bool { return o.namespace != namespace })
	slices.SortFunc(all, func(a, b object) int { return strings.Compare(a.kind+a.name, b.kind+b.name) })
	return all
}

// flip creates and deletes objects of a namespace, some of them again and again.
func (w *tenants) flip(namespace string, round int) {
	for _, o := range w.in(namespace) {
		if w.IntN(2) == 0 {
			w.remove(o)
		}
	}
	kinds := []string{"PersistentPodState", "WorkloadSpread", "PodUnavailableBudget", "Required"}
	w.create(object{kinds[w.IntN(len(kinds))], namespace, fmt.Sprint("n", w.IntN(2)*round)})
}

// lead is what the leader does until there is nothing to do. Some of its writes fail.
func (w *tenants) lead() {
	w.Helper()
	if !w.changed && (w.wake.IsZero() || w.Now.Before(w.wake)) {
		return
	}
	w.changed, w.wake = false, time.Time{}
	for {
		w.plan()
		if w.IntN(20) == 0 { // a conflict
			pass, err := entries.Next(w.Observation, w.state, w.policy)
			if err != nil {
				w.Fatal(err)
			}
			w.state, w.wake = pass.State, w.Now.Add(200*time.Millisecond)
			return
		}
		if w.next() == nil {
			break
		}
		w.wrote = append(w.wrote, w.Now)
	}
	if pass, err := entries.Next(w.Observation, w.state, w.policy); err != nil {
		w.Fatal(err)
	} else if pass.RequeueAfter > 0 {
		w.wake = w.Now.Add(pass.RequeueAfter)
	}
}

func (w *tenants) plan() {
	w.Helper()
	var all []scope.Contribution
	for _, s := range scope.Sources(scope.SourceOptions{}) {
		var objects []*unstructured.Unstructured
		for o := range w.objects {
			if raw := o.stored(); raw.GetKind() == s.Kind.Kind {
				objects = append(objects, raw)
			}
		}
		all = append(all, s.Contribute(objects))
	}
	w.Steady = steady.Next(all, w.state.Steady, steady.Policy{}, w.Now)
	planned, err := scope.Plan(scope.Input{Namespace: "n", Client: w.policy.Client, Contributions: w.Steady.Contributions})
	if err != nil {
		w.Fatal(err)
	}
	w.Want = planned
}

// covered reports whether live entries have an object, or all pods of its namespace.
func (w *tenants) covered(o object) bool {
	return slices.ContainsFunc(w.Pods.Webhooks, func(e entry) bool {
		fails, selected := *e.FailurePolicy == admissionregistrationv1.Fail, e.MatchConditions[0].Expression
		return fails == o.closed() &&
			(strings.Contains(selected, "'"+o.workload()+"'") || strings.Contains(selected, "'"+o.namespace+"'"))
	})
}

// check fails where an object is not in force in time, or where a minute has too many writes.
func (w *tenants) check(most int) {
	w.Helper()
	for o, since := range w.objects {
		if w.Now.Sub(since) > promised && !w.covered(o) {
			w.Fatalf("%+v is stored for %s and not in force: %+v", o, w.Now.Sub(since), w.Pods.Webhooks)
		}
	}
	if at := slices.IndexFunc(w.Steady.Widened, func(n string) bool { return !strings.HasPrefix(n, "hostile") }); at >= 0 {
		w.Fatalf("all pods of %s are sent", w.Steady.Widened[at])
	}
	minute := slices.IndexFunc(w.wrote, func(t time.Time) bool { return w.Now.Sub(t) < time.Minute })
	if minute >= 0 && len(w.wrote)-minute > most {
		w.Fatalf("%d writes in a minute, more than %d", len(w.wrote)-minute, most)
	}
}

// exact fails where live entries have anything but the stored objects.
func (w *tenants) exact() {
	w.Helper()
	var want, have []string
	for o := range w.objects {
		want = append(want, o.workload())
	}
	quoted := regexp.MustCompile(`'([a-z0-9-]+|[a-z0-9-]+/[A-Za-z]+/[a-z0-9-]+)'`)
	for _, e := range w.Pods.Webhooks {
		for _, found := range quoted.FindAllStringSubmatch(e.MatchConditions[0].Expression, -1) {
			if strings.HasPrefix(found[1], "tenant") || strings.HasPrefix(found[1], "hostile") {
				have = append(have, found[1])
			}
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if diff := cmp.Diff(slices.Compact(want), slices.Compact(have)); diff != "" {
		w.Errorf("entries in the end (-stored +live):\n%s", diff)
	}
}

// TestTenants: whatever tenants do, selections of all of them are in force within a second, with few writes, and the
// entries are exact in the end.
func TestTenants(t *testing.T) {
	for name, c := range map[string]struct {
		why                     string
		quiet, hostile, minutes int
		// writes in a minute of one leader, and in all where there is one.
		writes, all int
	}{
		"quiet tenants": {"changes cost a write each, and removals few together", 12, 0, 3, 40, 0},
		"one hostile": {
			why:     "all of its pods are sent after some changes of each policy, and nothing is written any more",
			hostile: 1,
			minutes: 2,
			writes:  50,
			all:     50,
		},
		"some hostile": {"quiet tenants notice nothing", 6, 3, 1, 140, 0},
		"many hostile": {"no minute has more than 140 writes", 6, 20, 1, 140, 0},
	} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d: %s", seed, c.why)
			w := newTenants(t, seed)
			w.lead()
			for round := range c.minutes * int(time.Minute/tick) {
				w.Now = w.Now.Add(tick)
				for i := range c.hostile {
					w.flip(fmt.Sprint("hostile-", i), round)
				}
				if c.quiet > 0 && w.IntN(int(2500*time.Millisecond/tick)) == 0 {
					w.change(fmt.Sprint("tenant-", w.IntN(c.quiet)))
				}
				if c.all == 0 && w.IntN(1000) == 0 { // another one leads
					w.state, w.wrote, w.changed = entries.State{}, nil, true
				}
				w.lead()
				w.check(c.writes)
			}
			end := w.Now.Add(calm)
			for ; !w.wake.IsZero(); w.lead() {
				w.Now = w.wake
				w.check(c.writes)
			}
			if w.Now.After(end) {
				t.Errorf("the last write is %s late", w.Now.Sub(end))
			}
			w.exact()
			if c.all > 0 && len(w.wrote) > c.all {
				t.Errorf("%d writes in all, more than %d", len(w.wrote), c.all)
			}
		})
	}
}

// change adds or removes an object of a quiet tenant.
func (w *tenants) change(namespace string) {
	all := w.in(namespace)
	if len(all) > 0 && w.IntN(3) > 0 {
		w.remove(all[w.IntN(len(all))])
		return
	}
	kinds := []string{"PersistentPodState", "WorkloadSpread", "PodUnavailableBudget", "Required"}
	w.create(object{kinds[w.IntN(len(kinds))], namespace, fmt.Sprint("n", w.IntN(1000))})
}
