package ephemeraljob

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

// drawn is a pod as it was drawn: what the oracle decides upon.
type drawn struct {
	name  string
	age   int
	state string
}

// oracle decides as the documentation says, question by question.
type oracle struct {
	job  *v1alpha1.EphemeralJob
	pods []drawn
	late bool
}

func (o oracle) targets() []drawn {
	var all []drawn
	for _, p := range o.pods {
		switch p.state {
		case "unselected", "ended", "broken", "deleting", "taken", "running,ended", "failed,deleting":
		default:
			all = append(all, p)
		}
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].age > all[j].age || all[i].age == all[j].age && all[i].name < all[j].name
	})
	if n := o.job.Spec.Replicas; n != nil {
		all = all[:min(len(all), int(*n))]
	}
	return all
}

func (o oracle) count(states ...string) (n int) {
	for _, p := range o.targets() {
		if slices.Contains(states, p.state) {
			n++
		}
	}
	return n
}

// answer is the pods that get containers, and the status.
func (o oracle) answer() string {
	match := len(o.targets())
	wanted := match
	if n := o.job.Spec.Replicas; n != nil {
		wanted = int(*n)
	}
	waits, runs, succeeded, failed := o.count("waiting", "pulling", "added", "unknown"), o.count("running"),
		o.count("succeeded"), o.count("failed", "unstarted")
	counters := func(waits int) string { return fmt.Sprintf("%d/%d/%d/%d/%d", match, waits, runs, succeeded, failed) }
	switch {
	case match > 0 && succeeded == wanted:
		return "[] Succeeded " + counters(waits) + " over"
	case match > 0 && succeeded+failed == wanted:
		return "[] Failed " + counters(waits) + " over"
	case o.job.Spec.Paused:
		return "[] Paused " + counters(waits)
	case o.late:
		return "[] Failed " + counters(waits) + " over"
	}
	limit := 1
	if n := o.job.Spec.Parallelism; n != nil {
		limit = int(*n)
	}
	var added []string
	for _, bound := range []bool{true, false} {
		for _, p := range o.targets() {
			if due := p.state == "due" && bound || p.state == "unbound" && !bound ||
				p.state == "debugged" && bound; due && waits+runs < limit {
				added = append(added, p.name)
				waits++
			}
		}
	}
	phase := "Unknown"
	switch {
	case match == 0 || waits == wanted:
		phase = "Waiting"
	case runs > 0:
		phase = "Running"
	}
	return fmt.Sprintf("%v %s %s", added, phase, counters(waits))
}

// world draws a job and its pods.
func world(r *rand.Rand) (oracle, snapshot) {
	states := []string{
		"due", "due", "due", "unbound", "debugged", "waiting", "pulling", "added", "unknown", "running", "succeeded",
		"succeeded", "failed", "unstarted",
		"unselected", "ended", "broken", "deleting", "taken", "running,ended", "failed,deleting",
	}
	o := oracle{job: newJob()}
	if r.IntN(2) == 0 {
		parallelism(int32(r.IntN(6)))(o.job)
	}
	if r.IntN(3) == 0 {
		replicas(int32(r.IntN(7)))(o.job)
	}
	o.job.Spec.Paused = r.IntN(6) == 0
	if r.IntN(4) == 0 {
		seconds := int64(r.IntN(120))
		deadline(seconds)(o.job)
		o.late = seconds <= 60
	}
	only := states
	if r.IntN(4) == 0 {
		only = []string{"succeeded", "failed", "succeeded", "deleting"}
	}
	in := snapshot{job: o.job, now: epoch()}
	for i := range r.IntN(9) {
		p := drawn{name: fmt.Sprintf("p%d", i), age: r.IntN(3), state: only[r.IntN(len(only))]}
		pod := newPod(o.job, p.name, p.state)
		pod.CreationTimestamp = *ptrTo(epoch().Add(-time.Duration(p.age) * time.Hour))
		o.pods, in.pods = append(o.pods, p), append(in.pods, pod)
	}
	return o, in
}

// The plan is that of the oracle, in whatever order pods come, and a second pass over what the first has left is empty.
func TestLaws(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range 3000 {
		o, in := world(r)
		outcome, added := answered(planOf(in), nil)
		got, _, _ := strings.Cut(fmt.Sprintf("%v %s", added, picture(outcome.Status)), " Matched")
		got, _, _ = strings.Cut(got, " Job")
		if want := o.answer(); got != want {
			t.Fatalf("%s, want %s of %+v with %+v", got, want, o.pods, o.job.Spec)
		}
		shuffled := in
		shuffled.pods = slices.Clone(in.pods)
		r.Shuffle(len(shuffled.pods), func(i, j int) {
			shuffled.pods[i], shuffled.pods[j] = shuffled.pods[j], shuffled.pods[i]
		})
		again, also := answered(planOf(shuffled), nil)
		//nolint:govet // the errors are values of the same types
		if !reflect.DeepEqual(outcome, again) || !slices.Equal(added, also) {
			t.Fatalf("another order: %v, %v; %+v, %+v", added, also, outcome, again)
		}
		next := in
		next.job, next.pods = in.job.DeepCopy(), withContainers(in, added)
		next.job.Status = outcome.Status
		if again, more := answered(planOf(next), nil); len(more) > 0 || !cmp.Equal(outcome.Status, again.Status) {
			t.Fatalf("the second pass adds %v: %s", more, cmp.Diff(outcome.Status, again.Status))
		}
	}
}

// withContainers returns the pods after some got the containers.
func withContainers(in snapshot, names []string) []*corev1.Pod {
	pods := slices.Clone(in.pods)
	for i, pod := range pods {
		if pod != nil && slices.Contains(names, pod.Name) {
			pods[i] = pod.DeepCopy()
			pods[i].Spec.EphemeralContainers = append(pods[i].Spec.EphemeralContainers, containersOf(in.job)...)
		}
	}
	return pods
}

// Whatever the API server answers, a pass never crosses the parallelism, tries no pod twice, and leaves no free slot
// beside a pod that it could try.
func TestAnswers(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range 1000 {
		o, in := world(r)
		in.refused = map[types.UID]refusal{}
		errs := map[string]error{}
		for _, pod := range in.pods {
			if r.IntN(3) == 0 {
				errs[pod.Name] = forbidden("no")
			}
			if r.IntN(4) == 0 {
				in.refused[pod.UID] = refusal{
					text: "no", retryAt: epoch().Add(time.Duration(r.IntN(3)-1) * time.Second),
				}
			}
		}
		pass := planOf(in)
		tried := map[string]bool{}
		for writes := pass.batch(); len(writes) > 0; writes = pass.batch() {
			for _, w := range writes {
				name := w.Object.GetName()
				if tried[name] || in.refused[w.Object.GetUID()].retryAt.After(in.now) {
					t.Fatalf("pod %s is tried again", name)
				}
				tried[name] = true
				pass.added(w, errs[name])
			}
		}
		s := pass.status()
		limit := int32(1)
		if n := o.job.Spec.Parallelism; n != nil {
			limit = *n
		}
		before := int32(o.count("waiting", "pulling", "added", "unknown", "running"))
		if s.Waiting+s.Running > max(limit, before) {
			t.Fatalf("%d pods run, the limit is %d, and %d did before", s.Waiting+s.Running, limit, before)
		}
		if s.CompletionTime != nil || o.job.Spec.Paused || s.Waiting+s.Running >= limit {
			continue
		}
		for _, target := range pass.targets {
			if target.state == podDue && !tried[target.pod.Name] && !in.refused[target.pod.UID].retryAt.After(in.now) {
				t.Fatalf("pod %s is due, and %d of %d run", target.pod.Name, s.Waiting+s.Running, limit)
			}
		}
	}
}
