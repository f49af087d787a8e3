package subset_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// world has one WorkloadSpread, pods, and replicas of the webhook and of the controller that see an older state. Writes
// test the version.
type world struct {
	t    *testing.T
	r    *rand.Rand
	seed uint64
	now  time.Time

	ws      *subset.Spread
	version int
	pods    map[string]*corev1.Pod
	names   int
	// admitted are pods whose creation is decided and not done yet.
	admitted []*corev1.Pod
	// seen is what the cache of the controller shows.
	seen map[string]*corev1.Pod
	// caches of the replicas: an older state and its version.
	caches   [3]*subset.Spread
	versions [3]int
	story    []string
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d: %s\n%s", w.seed, fmt.Sprintf(format, args...), strings.Join(w.story, "\n"))
}

// limits of the bounded subsets.
func (w *world) limits() []int32 { return limitsOf(w.ws, 10) }

// in counts pods of a subset: those that exist and those that are admitted.
func (w *world) in(name string) int {
	n := 0
	for _, pod := range w.pods {
		if m, _ := subset.MatchOf(pod); m.Subset == name && subset.Active(pod) {
			n++
		}
	}
	for _, pod := range w.admitted {
		if m, _ := subset.MatchOf(pod); m.Subset == name {
			n++
		}
	}
	return n
}

// write stores a status if a replica has seen the stored version.
func (w *world) write(replica int, next *subset.Spread) bool {
	if w.versions[replica] != w.version {
		w.caches[replica], w.versions[replica] = w.ws, w.version // read again
		return false
	}
	w.version++
	w.ws = next
	w.caches[replica], w.versions[replica] = w.ws, w.version
	return true
}

// admit has a replica decide about a batch of pods; it tries until its write is accepted.
func (w *world) admit(replica int) {
	batch := 1 + w.r.IntN(4)
	for {
		b := subset.Open(w.caches[replica], w.limits())
		var places []subset.Place
		for i := range batch {
			places = append(places, b.Admit(subset.Arrival{Version: one, ID: fmt.Sprintf("id-%d", w.names+i)}, w.now))
		}
		next := w.caches[replica].DeepCopy()
		next.Status = b.Status()
		if b.Changed() && !w.write(replica, next) {
			continue
		}
		for i, place := range places {
			pod := podIn(fmt.Sprintf("web-%03d", w.names+i), "")
			if place.Subset != nil {
				injected, err := subset.Inject(pod, place.Subset, subset.Match{
					Name: "spread", Subset: place.Subset.Name, UID: fmt.Sprintf("id-%d", w.names+i),
				})
				if err != nil {
					w.fail("%v", err)
				}
				pod = injected
			}
			if w.r.IntN(10) == 0 {
				continue // another webhook rejects the pod
			}
			w.admitted = append(w.admitted, pod)
		}
		w.names += batch
		return
	}
}

// depart has a replica admit the deletion of a pod. One in three does not happen.
func (w *world) depart(replica int) {
	for name, pod := range w.pods {
		m, is := subset.MatchOf(pod)
		if !is {
			return
		}
		for {
			b := subset.Open(w.caches[replica], w.limits())
			b.Depart(subset.Departure{Version: one, Subset: m.Subset, ID: subset.IDOf(pod), Pod: name}, w.now)
			next := w.caches[replica].DeepCopy()
			next.Status = b.Status()
			if !b.Changed() || w.write(replica, next) {
				break
			}
		}
		if w.r.IntN(3) > 0 {
			delete(w.pods, name)
			w.story = append(w.story, "deleted "+name)
		}
		return
	}
}

// reconcile computes the status from what the cache of the controller shows.
func (w *world) reconcile() {
	var all []*corev1.Pod
	for _, pod := range w.seen {
		all = append(all, pod)
	}
	ms := subset.Assign(subset.Assignment{
		Spread:  w.ws,
		Limits:  w.limits(),
		Pods:    all,
		Node:    func(string) *corev1.Node { return nil },
		Version: func(*corev1.Pod) string { return one },
	})
	r := subset.Status(subset.Observation{Spread: w.ws, Limits: w.limits(), Members: ms, Now: w.now})
	next := w.ws.DeepCopy()
	next.Status = r.Status
	w.version++
	w.ws = next
}

// rest lets everything arrive and all records end.
func (w *world) rest() {
	w.create(len(w.admitted))
	w.show()
	w.now = w.now.Add(time.Hour)
	w.reconcile()
	for i := range w.caches {
		w.caches[i], w.versions[i] = w.ws, w.version
	}
}

func (w *world) create(n int) {
	for _, pod := range w.admitted[:n] {
		w.pods[pod.Name] = pod
	}
	w.admitted = w.admitted[n:]
}

func (w *world) show() {
	w.seen = map[string]*corev1.Pod{}
	maps.Copy(w.seen, w.pods)
}

// TestWorld: three replicas with old caches, pods that others reject, deletions that do not happen, and a controller
// that lags. No deletion that does not happen may have opened a place at rest, no pod is rejected, and without such
// deletions no limit is ever crossed.
func TestWorld(t *testing.T) {
	seed := rand.Uint64()
	for run := range uint64(60) {
		w := &world{
			t:    t,
			seed: seed + run,
			r:    rand.New(rand.NewPCG(seed+run, 2)),
			now:  noon(),
			ws:   spreadOf(3, "40%", -1),
			pods: map[string]*corev1.Pod{},
		}
		w.rest()
		deletions := run%2 == 0
		for i := range 60 {
			w.now = w.now.Add(time.Duration(w.r.IntN(2000)) * time.Millisecond)
			switch replica := w.r.IntN(3); w.r.IntN(6) {
			case 0, 1:
				w.admit(replica)
			case 2:
				if deletions {
					w.depart(replica)
				}
			case 3:
				w.create(w.r.IntN(len(w.admitted) + 1))
			case 4:
				w.show()
			case 5:
				w.reconcile()
			}
			if len(w.admitted) > 3 || i%10 == 9 { // no creation takes as long as a record lasts
				w.create(len(w.admitted))
				w.show()
			}
			for i, limit := range w.limits() {
				if name := w.ws.Spec.Subsets[i].Name; !deletions && limit >= 0 && w.in(name) > int(limit) {
					w.fail("%d pods in %s, limit %d", w.in(name), name, limit)
				}
			}
		}
		w.rest()
		before := w.ws
		for i, limit := range w.limits() {
			name := w.ws.Spec.Subsets[i].Name
			e := w.ws.Status.SubsetStatuses[i]
			if int(e.Replicas) != w.in(name) || limit >= 0 && e.MissingReplicas != max(0, limit-e.Replicas) {
				w.fail("%s: %d pods, %+v", name, w.in(name), e)
			}
		}
		for _, list := range w.ws.Status.VersionedSubsetStatuses {
			for _, e := range list {
				if len(e.CreatingPods)+len(e.DeletingPods) > 0 {
					w.fail("records are left: %+v", e)
				}
			}
		}
		b := subset.Open(before, w.limits()) // at rest each place that is missing is given once
		given := map[string]int{}
		for i := range 100 {
			given[b.Admit(subset.Arrival{Version: one, ID: fmt.Sprint(i)}, w.now).Subset.Name]++
		}
		for i, limit := range w.limits() {
			if e := before.Status.SubsetStatuses[i]; limit >= 0 && given[e.Name] != int(e.MissingReplicas) {
				w.fail("%s: %d given, %d missing", e.Name, given[e.Name], e.MissingReplicas)
			}
		}
	}
}

// FuzzStatus: whatever is stored gives a status, and books that keep their bounds.
func FuzzStatus(f *testing.F) {
	f.Add("a", "50%", int32(3), int32(-4), int64(0), `{"name":"spread","subset":"a"}`)
	f.Add("", "x", int32(-9), int32(1<<30), int64(1<<40), `[]`)
	f.Fuzz(func(t *testing.T, name, percent string, most, replicas int32, at int64, match string) {
		ws := adaptive(spreadOf(int(most), percent, -1), most)
		ws.Spec.Subsets[0].Name = name
		ws.Spec.Subsets[0].Patch = patch(match)
		ws = stored(ws, subset.Entry{
			Name:            name,
			Replicas:        replicas,
			MissingReplicas: replicas,
			CreatingPods:    map[string]metav1.Time{name: metav1.NewTime(time.Unix(at, 0))},
		})
		pod := podIn("web", "")
		pod.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": match}
		limits := limitsOf(ws, replicas)
		ms := subset.Assign(subset.Assignment{
			Spread: ws, Limits: limits, Pods: []*corev1.Pod{pod}, Node: node, Version: func(*corev1.Pod) string { return one },
		})
		r := subset.Status(subset.Observation{Spread: ws, Limits: limits, Members: ms, Now: noon()})
		subset.Costs(subset.Observation{Spread: ws, Limits: limits, Members: ms, Newest: one})
		for i := range r.Status.SubsetStatuses {
			if e := r.Status.SubsetStatuses[i]; e.MissingReplicas < -1 {
				t.Errorf("%+v", e)
			}
		}
		b := subset.Open(ws, limits)
		b.Admit(subset.Arrival{Version: one, ID: "x"}, noon())
		b.Depart(subset.Departure{Version: one, Subset: name, ID: "y", Pod: "y"}, noon())
		for _, e := range b.Status().VersionedSubsetStatuses[one] {
			if b.Changed() && e.MissingReplicas < -1 {
				t.Errorf("%+v", e)
			}
		}
		subset.ByOrdinal(ws, most)
		_, _ = subset.Inject(pod, &ws.Spec.Subsets[0], subset.Match{})
	})
}
