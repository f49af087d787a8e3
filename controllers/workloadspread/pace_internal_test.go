package workloadspread

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// delays is a queue that notes how long requests wait.
type delays struct {
	queue

	all []time.Duration
}

func (q *delays) Add(ctrl.Request) { q.all = append(q.all, 0) }

func (q *delays) AddAfter(_ ctrl.Request, after time.Duration) { q.all = append(q.all, after) }

// The status follows at once where the target reports a status and has the pods that it wants, in either order of the
// two events. Nothing is written early while the target has more pods, fewer, or those of two revisions.
func TestSettled(t *testing.T) {
	events := []string{"pod", "report"}
	for name, row := range map[string]struct {
		pods    int
		updated int
		events  []string
		written bool
	}{
		"scaled in":                    {pods: 4, events: events, written: true},
		"scaled in, the report first":  {pods: 4, events: []string{"report", "pod"}, written: true},
		"scaled in, without a report":  {pods: 4, events: []string{"pod"}, written: true},
		"more pods":                    {pods: 5, events: events},
		"fewer pods":                   {pods: 3, events: events},
		"a rollout":                    {pods: 4, updated: 1, events: events},
		"the end of a rollout":         {pods: 4, updated: 4, events: events, written: true},
		"the generation is reconciled": {pods: 5, events: append(slices.Clone(events), "generation"), written: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, r := newCluster(t)
			now := noon()
			r.api.Now = func() time.Time { return now }
			ws := spreadOf(1, -1)
			c.put(ws, cloneSet(), spreadPod("gone", "a"))
			if err := r.index.Put(raw(t, ws)); err != nil {
				t.Fatal(err)
			}
			c.reconcile(r)
			for i := range row.pods {
				pod := spreadPod("p"+string(rune('0'+i)), "a")
				if i < row.updated {
					pod.Labels = map[string]string{"controller-revision-hash": "new"}
				}
				c.put(pod)
			}
			if err := c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "gone",
			}}); err != nil {
				t.Fatal(err)
			}
			c.Requests()
			key := client.ObjectKeyFromObject(ws)
			for range 3 {
				now = now.Add(r.pace.delay(key, 0, now))
			}
			q, old, set := &delays{}, cloneSet(), cloneSet()
			old.ResourceVersion, set.ResourceVersion = "1", "2"
			kind := appsv1beta1.GroupVersion.WithKind("CloneSet").GroupKind()
			for _, e := range row.events {
				switch e {
				case "pod":
					r.podEvents().Delete(t.Context(), event.DeleteEvent{Object: spreadPod("gone", "a")}, q)
				case "generation":
					set.Generation++
					fallthrough
				case "report":
					r.workloadEvents(kind).Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: set}, q)
				}
			}
			wait := slices.Min(q.all)
			if reported := slices.Contains(row.events, "report"); reported != (wait <= settling) {
				t.Errorf("the pass comes after %s", wait)
			}
			now = now.Add(wait)
			if got := c.reconcile(r); (len(got) > 0) != row.written {
				t.Errorf("%s after the events, the pass writes %v", wait, got)
			}
			if row.written {
				return
			}
			if again := r.pace.delay(key, 0, now); again != together-wait {
				t.Errorf("the pause is over after %s", again)
			}
			now = now.Add(together)
			if got := c.reconcile(r); len(got) == 0 {
				t.Error("the pass after the pause writes nothing")
			}
		})
	}
}

// TestSettledOnce: a pause ends early once in a generation of the target.
func TestSettledOnce(t *testing.T) {
	var p pacer
	key, now := client.ObjectKey{Name: "spread"}, noon()
	early := 0
	for i := range int64(30) {
		p.delay(key, few+1, now)
		if p.reported(key, 1+i/10, now) && p.early(key, true, now) == 0 {
			early++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if early != 3 {
		t.Errorf("%d pauses of 3 generations ended early", early)
	}
}

// TestPace: a change of one pod counts at once, and events that follow each other are gathered for up to a second.
func TestPace(t *testing.T) {
	var p pacer
	key, now := client.ObjectKey{Namespace: "shop", Name: "spread"}, noon()
	at := func(after, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := p.delay(key, 0, now); got != want {
			t.Errorf("an event waits for %s, want %s", got, want)
		}
	}
	at(0, shortest)
	at(10*time.Millisecond, shortest-10*time.Millisecond)
	at(shortest, growth*shortest)
	at(growth*shortest, together)
	at(together/2, together/2)
	at(together, together)
	if got := p.delay(client.ObjectKey{Namespace: "other", Name: "spread"}, few, now); got != shortest {
		t.Errorf("an event of another WorkloadSpread waits for %s", got)
	}
	at(3*together, shortest)
	if got := p.delay(client.ObjectKey{Name: "busy"}, few+1, now); got != together {
		t.Errorf("an event among many creations waits for %s", got)
	}
	now = now.Add(-time.Hour) // a clock that is set back
	at(0, shortest)
}

// TestPaceInStorms: passes of a storm are at most one a second, and three for its beginning, and one more where the
// target reports that it has settled, for each of its generations.
func TestPaceInStorms(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var p pacer
		key, now := client.ObjectKey{Name: "spread"}, noon()
		passes, due, seconds := 0, time.Time{}, 1+r.IntN(20)
		for now.Before(noon().Add(time.Duration(seconds) * time.Second)) {
			if !due.IsZero() && !now.Before(due) {
				passes, due = passes+1, time.Time{}
			}
			if at := now.Add(p.delay(key, 0, now)); due.IsZero() || at.Before(due) {
				due = at
			}
			if p.reported(key, 7, now) && p.early(key, r.IntN(2) == 0, now) == 0 {
				passes, due = passes+1, time.Time{}
			}
			now = now.Add(time.Duration(r.IntN(900)) * time.Millisecond / time.Duration(1+r.IntN(100)))
		}
		if passes > seconds+4 {
			t.Errorf("seed %d: %d passes in %d seconds", seed, passes, seconds)
		}
	}
}
