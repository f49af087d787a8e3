package pub_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
)

const (
	// tick is a step of the simulated cluster.
	tick = 500 * time.Millisecond
	// lag is how many ticks copies may be behind.
	lag = 6
)

// slot is a replica of the workload: one pod after the other.
type slot struct {
	generation                   int
	ready, terminating           bool
	image, runs                  int
	written, started, readyAgain time.Time
	// admitted means that the slot is not available because of a disruption that was admitted while it was.
	admitted bool
	// exempt means that the record of the pod is one of an exempt user, for whom the budget had no room. Until
	// exemptUntil that record admits others, too.
	exempt      bool
	exemptUntil time.Time
}

func (s *slot) available() bool { return s.ready && !s.terminating && s.image == s.runs }

// pod is how the API server has the pod of a slot.
func (s *slot) pod(i int) *corev1.Pod {
	pod := newPod(fmt.Sprintf("web-%d-%d", i, s.generation), image(fmt.Sprint("web:", s.image)))
	status := &pod.Status.ContainerStatuses[0]
	status.Image, status.ImageID = fmt.Sprint("web:", s.runs), fmt.Sprint("web@sha256:", s.runs)
	status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.started.Truncate(time.Second))}
	if !s.ready {
		unready(pod)
	}
	if s.terminating {
		terminating(pod)
	}
	if !s.written.IsZero() {
		annotation(kruise.InPlaceUpdateStateKey,
			fmt.Sprintf(`{"revision":"r","updateTimestamp":%q,"lastContainerStatuses":{"main":{"imageID":"web@sha256:%d"}}}`,
				s.written.UTC().Truncate(time.Second).Format(time.RFC3339), s.image-1))(pod)
	}
	return pod
}

// review is a disruption on its way through a replica of the webhook.
type review struct {
	slot, generation int
	operation        pub.Operation
	// copy is the budget that the replica has, at a version.
	copy    pub.Status
	version int
	// after is the tick of the next step; verdict is set once the record is written.
	after    int
	admitted bool
	user     string
	tries    int
}

// race is a cluster with several replicas of the webhook and a controller, all with copies that are behind.
type race struct {
	*rand.Rand

	t       *testing.T
	object  *object
	version int
	// history has the statuses by version.
	history []pub.Status
	slots   []slot
	// seen are the pods of former ticks, the newest last.
	seen    [][]*corev1.Pod
	reviews []*review
	now     time.Time
	ticks   int
	// size of groups; 1 where the budget counts pods.
	size int
	// atController is the tick of the pods that the controller has.
	atController int

	disruptions, refusals, conflicts, failures, worst int
	reasons                                           map[pub.Reason]int
}

func newRace(t *testing.T, r *rand.Rand) *race {
	edits := []func(*object){
		maxUnavailable(fmt.Sprint(1 + r.IntN(3))), maxUnavailable("30%"), minAvailable("70%"), minAvailable("8"),
	}
	x := &race{
		Rand: r, t: t, object: newObject("web", edits[r.IntN(len(edits))]), now: at(0), reasons: map[pub.Reason]int{},
		size: 1 + r.IntN(3),
	}
	x.slots = make([]slot, x.size*(8+r.IntN(5)))
	if x.size > 1 {
		x.object.Spec.PodGroupPolicy = &policyv1beta1.PodGroupPolicy{GroupLabelKey: "group", GroupSize: int32(x.size)}
	}
	for i := range x.slots {
		x.slots[i] = slot{ready: true, image: 1, runs: 1, started: at(-100)}
	}
	x.see()
	x.commit(x.recount(x.object.Status, 0), 0)
	return x
}

// see records what is observed at this tick.
func (x *race) see() {
	var pods []*corev1.Pod
	for i := range x.slots {
		pods = append(pods, x.pod(i))
	}
	x.seen = append(x.seen, pods)
}

// pod is how the API server has the pod of a slot, with its group.
func (x *race) pod(i int) *corev1.Pod {
	pod := x.slots[i].pod(i)
	pod.Labels = maps.Clone(pod.Labels)
	pod.Labels["group"] = fmt.Sprint("group-", i/x.size)
	return pod
}

// commit writes a status, if nothing was written since a version.
func (x *race) commit(s pub.Status, upon int) bool {
	if upon != x.version {
		x.conflicts++
		return false
	}
	for _, m := range []map[string]metav1.Time{s.DisruptedPods, s.UnavailablePods} { // as the API server stores them
		for name, when := range m {
			m[name] = metav1.NewTime(when.Truncate(time.Second))
		}
	}
	x.object.Status = s
	x.version++
	x.history = append(x.history, s)
	return true
}

// behind returns a status of some versions ago.
func (x *race) behind() (pub.Status, int) {
	version := max(1, x.version-x.IntN(4))
	return x.history[version-1], version
}

func (x *race) budget(s pub.Status) pub.Budget {
	o := x.object.DeepCopy()
	o.Status = *s.DeepCopy()
	return read(o)
}

func (x *race) recount(s pub.Status, atTick int) pub.Status {
	r := pub.Recount(pub.Input{
		Budget: x.budget(s), Counts: x.budget(s).Count(x.seen[atTick], pub.Policy{}),
		Total: deployments(int32(len(x.slots))), Now: x.now,
	})
	return r.Status
}

// step is one tick.
func (x *race) step() {
	x.ticks++
	x.now = x.now.Add(tick)
	for range x.IntN(4) {
		x.disrupt(x.IntN(len(x.slots)))
	}
	for _, i := range x.Perm(len(x.reviews)) {
		x.proceed(x.reviews[i])
	}
	var open []*review
	for _, r := range x.reviews {
		if r.after >= 0 {
			open = append(open, r)
		}
	}
	x.reviews = open
	x.live()
	x.see()
	x.control()
	x.check()
}

// disrupt begins a disruption. A pod that is unavailable is disrupted at once, as its review costs nothing.
func (x *race) disrupt(i int) {
	operations := []pub.Operation{pub.Delete, pub.Evict, pub.Update, pub.Resize}
	r := &review{
		slot: i, generation: x.slots[i].generation, operation: operations[x.IntN(len(operations))], after: x.ticks,
	}
	if x.IntN(40) == 0 {
		r.user = pub.SystemUsers()[0]
	}
	r.copy, r.version = x.behind()
	x.reviews = append(x.reviews, r)
}

// proceed makes a step of a review: it decides on its copy and writes the record, or changes the pod once the record is
// written.
func (x *race) proceed(r *review) {
	s := &x.slots[r.slot]
	switch {
	case r.after != x.ticks:
		return
	case s.generation != r.generation || s.terminating:
		r.after = -1
		return
	case r.admitted:
		x.apply(r)
		return
	}
	b := x.budget(r.copy)
	d := pub.Disruption{
		Pod: x.pod(r.slot), Operation: r.operation, User: r.user, Policy: pub.Policy{ExemptUsers: pub.SystemUsers()},
	}
	v := pub.Review(b, d, x.now)
	x.reasons[v.Reason]++
	switch {
	case v.Reason == "" || v.Allowed == (v.Text != ""):
		x.t.Fatalf("the verdict %+v has no reason", v)
	case v.Record != nil:
		if !x.commit(b.Spend(*v.Record).Status, r.version) {
			r.copy, r.version = x.history[x.version-1], x.version // read live, and decide again at the next tick or in this one
			r.tries++
			if r.after = x.ticks + x.IntN(2); r.after == x.ticks {
				x.proceed(r)
			}
			return
		}
		if v.Reason == pub.UserExempt && !s.admitted {
			s.exempt, s.exemptUntil = true, x.now.Add(10*time.Second)
		}
		r.admitted, r.after = true, x.ticks+x.IntN(4)
		if r.after == x.ticks {
			x.apply(r)
		}
	case v.Allowed:
		x.apply(r)
	default:
		x.refusals++
		r.after = -1
	}
}

// apply changes the pod, as the API server does after admission.
func (x *race) apply(r *review) {
	s := &x.slots[r.slot]
	r.after = -1
	x.disruptions++
	s.admitted = s.admitted || s.available()
	pause := time.Duration(1+x.IntN(20)) * time.Second
	switch r.operation {
	case pub.Delete, pub.Evict:
		s.terminating = true
	case pub.Update:
		s.image++
		s.written = x.now
	case pub.Resize:
		s.ready = false // as a node does that restarts the container after all
	}
	s.readyAgain = x.now.Add(pause)
}

// live lets nodes act: pods fail, stop, start and recover.
func (x *race) live() {
	for i := range x.slots {
		s := &x.slots[i]
		switch {
		case s.available() && x.IntN(200) == 0:
			x.failures++
			s.ready, s.readyAgain = false, x.now.Add(time.Duration(x.IntN(30))*time.Second)
		case s.terminating && x.IntN(4) == 0:
			*s = slot{
				generation: s.generation + 1, image: s.image, runs: s.image, readyAgain: s.readyAgain,
				admitted: s.admitted, exempt: s.exempt, exemptUntil: s.exemptUntil,
			}
		case s.terminating:
		case s.image != s.runs && s.ready && x.IntN(3) == 0:
			s.ready = false // the container stops
		case !s.ready && !x.now.Before(s.readyAgain):
			s.ready = true
			if s.runs != s.image || s.started.IsZero() {
				s.runs, s.started = s.image, x.now
			}
		}
		if s.available() && !x.pending(i) {
			s.admitted, s.exempt = false, s.exempt && !x.now.After(s.exemptUntil)
		}
	}
}

// pending reports whether an admitted disruption of a pod is still to be applied.
func (x *race) pending(i int) bool {
	for _, r := range x.reviews {
		if r.slot == i && r.admitted && r.after >= 0 && r.generation == x.slots[i].generation {
			return true
		}
	}
	return false
}

// control lets the controller write what it computes from pods that are behind, and from a status that may be.
func (x *race) control() {
	x.atController = max(x.atController, x.ticks-x.IntN(lag+1))
	if x.IntN(3) == 0 {
		return
	}
	status, version := x.behind()
	if s := x.recount(status, x.atController); !equal(s, status) && !x.commit(s, version) && x.IntN(2) == 0 {
		x.commit(x.recount(x.object.Status, x.atController), x.version)
	}
}

// room returns how many groups may be unavailable, or pods without groups.
func (x *race) room() int {
	groups := len(x.slots) / x.size
	desired, _ := read(x.object).Desired(int32(groups))
	return groups - int(desired)
}

// check counts the groups, or the pods, that admitted disruptions made unavailable, but for those without room in the
// budget.
func (x *race) check() {
	unavailable := map[int]bool{}
	for i := range x.slots {
		if s := &x.slots[i]; s.admitted && !s.exempt && !s.available() {
			unavailable[i/x.size] = true
		}
	}
	x.worst = max(x.worst, len(unavailable))
	if len(unavailable) > x.room() {
		x.t.Fatalf("at %v groups %v of %d pods are unavailable through admitted disruptions, and the budget is %d",
			x.now.Sub(at(0)), slices.Sorted(maps.Keys(unavailable)), x.size, x.room())
	}
}

func TestRacesStayInTheBudget(t *testing.T) {
	d := newDraw(t)
	const runs, ticks = 30, 400
	var disruptions, refusals, conflicts, failures, full int
	reasons := map[pub.Reason]int{}
	for range runs {
		x := newRace(t, d.Rand)
		for range ticks {
			x.step()
		}
		disruptions, refusals, conflicts, failures = disruptions+x.disruptions, refusals+x.refusals, conflicts+x.conflicts,
			failures+x.failures
		if x.worst == x.room() {
			full++
		}
		for reason, n := range x.reasons {
			reasons[reason] += n
		}
	}
	var told []string
	for _, reason := range []pub.Reason{
		pub.Spent, pub.AlreadyRecorded, pub.PodUnavailable, pub.GroupUnavailable, pub.Exhausted, pub.UserExempt,
	} {
		if reasons[reason] == 0 {
			t.Errorf("no verdict %s was drawn", reason)
		}
		told = append(told, fmt.Sprint(reason, " ", reasons[reason]))
	}
	t.Logf("%d ticks: %d disruptions, %d refusals, %d conflicts, %d failures of pods, "+
		"the budget was used up in %d of %d runs; %s; violations 0",
		runs*ticks, disruptions, refusals, conflicts, failures, full, runs, strings.Join(told, ", "))
	if conflicts == 0 || refusals == 0 || full == 0 {
		t.Error("the draw has shown nothing")
	}
}
