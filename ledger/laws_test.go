package ledger_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/ledger"
)

// world is an API server with one writer, and a cache that lags behind it.
type world struct {
	*server

	version int
	// changes that the cache has not seen: what the server had after each of them.
	log    []map[client.ObjectKey]*corev1.Pod
	cached map[client.ObjectKey]*corev1.Pod
	// since is when the cache had seen all.
	since time.Time
}

func (w *world) change(do func(map[client.ObjectKey]*corev1.Pod)) {
	do(w.pods)
	w.log = append(w.log, maps.Clone(w.pods))
}

// lag lets the cache see some of the changes.
func (w *world) lag(n int) {
	n = min(n, len(w.log))
	if n > 0 {
		w.cached = w.log[n-1]
		w.log = w.log[n:]
	}
}

// Whatever the cache has seen, the owner of all writes sees what the API server has.
func TestOwnWritesAreSeen(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	owner := types.NamespacedName{Name: "web"}
	for run := range 300 {
		w := &world{
			server: &server{pods: map[client.ObjectKey]*corev1.Pod{}},
			cached: map[client.ObjectKey]*corev1.Pod{},
			since:  time.Unix(1000, 0),
		}
		now := time.Unix(1000, 0)
		l := ledger.New[*corev1.Pod](w, func() time.Time { return now })
		for move := range 60 {
			// Names repeat across namespaces.
			name := client.ObjectKey{Namespace: string(rune('m' + random.IntN(3))), Name: string(rune('a' + random.IntN(2)))}
			w.version++
			fresh := pod(name.Name, w.version)
			fresh.Namespace = name.Namespace
			there := w.pods[name]
			switch {
			case random.IntN(3) == 0:
				w.lag(random.IntN(4))
				now = now.Add(time.Duration(random.IntN(90)) * time.Second)
				if now.After(w.since.Add(8 * time.Minute)) { // it lags for minutes, not for ever
					w.lag(len(w.log))
				}
				if len(w.log) == 0 {
					w.since = now
				}
			case there == nil:
				fresh.UID = types.UID(name.String() + fresh.ResourceVersion)
				w.change(func(pods map[client.ObjectKey]*corev1.Pod) { pods[name] = fresh })
				l.Created(owner, fresh)
			case random.IntN(2) == 0:
				fresh.UID = there.UID
				w.change(func(pods map[client.ObjectKey]*corev1.Pod) { pods[name] = fresh })
				l.Patched(owner, fresh)
			default:
				w.change(func(pods map[client.ObjectKey]*corev1.Pod) { delete(pods, name) })
				l.Deleted(owner, there)
			}
			var want []string
			for _, p := range w.pods {
				want = append(want, show(p))
			}
			got, _ := overlay(t, l, owner, slices.Collect(maps.Values(w.cached)))
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, run %d, move %d: got %v, the API server has %v", seed, run, move, got, want)
			}
		}
	}
}

// What other clients do is seen after Patience at the latest, when the caller looks again as it was asked to.
func TestHealsUnprompted(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 2))
	owner := types.NamespacedName{Name: "web"}
	for range 200 {
		w := &world{server: &server{pods: map[client.ObjectKey]*corev1.Pod{}}}
		now := time.Unix(1000, 0)
		l := ledger.New[*corev1.Pod](w, func() time.Time { return now })
		for i := range random.IntN(20) {
			l.Created(owner, pod(string(rune('a'+i)), i)) // and deleted by another client at once
			now = now.Add(time.Duration(random.IntN(20)) * time.Second)
		}
		for looks := 0; ; looks++ {
			got, recheck := overlay(t, l, owner, nil)
			if len(got) == 0 {
				break
			}
			if recheck <= 0 || recheck > ledger.Patience || looks > 20 {
				t.Fatalf("seed %d: %v are seen, and the next look is after %s", seed, got, recheck)
			}
			now = now.Add(recheck)
		}
	}
}

// An object that exists is in the answer of Overlay or in that of Deleting, and in no more than one of them, whatever
// the cache has seen.
func TestWhatExistsIsSeen(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 3))
	owner := types.NamespacedName{Name: "agent"}
	for run := range 300 {
		w := &world{server: &server{pods: map[client.ObjectKey]*corev1.Pod{}}, cached: map[client.ObjectKey]*corev1.Pod{}}
		now := time.Unix(1000, 0)
		l := ledger.New[*corev1.Pod](w, func() time.Time { return now })
		for move := range 60 {
			name := client.ObjectKey{Namespace: "shop", Name: string(rune('a' + random.IntN(3)))}
			w.version++
			fresh, there := pod(name.Name, w.version), w.pods[name]
			fresh.Namespace = name.Namespace
			switch {
			case random.IntN(3) == 0:
				w.lag(random.IntN(4))
				if now = now.Add(time.Second); move%20 == 0 { // it lags for less than Patience
					w.lag(len(w.log))
				}
			case there == nil:
				fresh.UID = types.UID(fmt.Sprint(w.version))
				w.change(func(pods map[client.ObjectKey]*corev1.Pod) { pods[name] = fresh })
				l.Created(owner, fresh)
			case there.DeletionTimestamp != nil: // its grace period ends
				w.change(func(pods map[client.ObjectKey]*corev1.Pod) { delete(pods, name) })
			default:
				fresh.UID, fresh.DeletionTimestamp = there.UID, &metav1.Time{Time: now}
				w.change(func(pods map[client.ObjectKey]*corev1.Pod) { pods[name] = fresh })
				l.Deleted(owner, there)
			}
			seen := map[types.UID]int{}
			all, _, err := l.Overlay(t.Context(), owner, slices.Collect(maps.Values(w.cached)))
			if err != nil {
				t.Fatal(err)
			}
			deleting, _ := l.Deleting(owner)
			for _, p := range slices.Concat(all, deleting) {
				if seen[p.UID]++; seen[p.UID] > 1 {
					t.Fatalf("seed %d, run %d, move %d: %s is seen twice", seed, run, move, show(p))
				}
			}
			for _, p := range w.pods {
				if seen[p.UID] == 0 {
					t.Fatalf("seed %d, run %d, move %d: %s exists and is not seen", seed, run, move, show(p))
				}
			}
		}
	}
}

// A deletion that the cache never shows does not stay for ever.
func TestDeletingEnds(t *testing.T) {
	owner := types.NamespacedName{Name: "agent"}
	for name, c := range map[string]struct {
		write  func(*ledger.Ledger[*corev1.Pod])
		cached []*corev1.Pod
	}{
		"the cache has shown the object": {
			func(l *ledger.Ledger[*corev1.Pod]) { l.Deleted(owner, pod("a", 1)) }, []*corev1.Pod{pod("a", 1)},
		},
		"the cache shows nothing of it": {func(l *ledger.Ledger[*corev1.Pod]) {
			l.Created(owner, pod("a", 1))
			l.Deleted(owner, pod("a", 1))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			l := ledger.New[*corev1.Pod](&server{}, func() time.Time { return now })
			c.write(l)
			for _, want := range []int{1, 0, 0} {
				overlay(t, l, owner, c.cached)
				if deleting, again := l.Deleting(owner); len(deleting) != want || (again > 0) != (want > 0 && c.cached == nil) {
					t.Errorf("at %s: %d objects, and again after %s, want %d", now.UTC(), len(deleting), again, want)
				}
				now = now.Add(ledger.Patience)
			}
		})
	}
}
