package pub_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/pub"
)

// draw draws what a status is computed from.
type draw struct{ *rand.Rand }

func newDraw(t *testing.T) draw {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return draw{rand.New(rand.NewPCG(seed, 0))}
}

func (d draw) one(of ...string) string { return of[d.IntN(len(of))] }

func (d draw) chance(percent int) bool { return d.IntN(100) < percent }

func (d draw) pod(name string) *corev1.Pod {
	pod := newPod(name)
	edits := []func(*corev1.Pod){
		unready, terminating, halfUpdated, label("unavailable-pod.kruise.io/x", ""), updatedInPlace(-d.IntN(12), -d.IntN(12)),
		func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodPending
		},
	}
	if d.chance(50) {
		edits[d.IntN(len(edits))](pod)
	}
	return pod
}

func (d draw) records(pods []*corev1.Pod) map[string]metav1.Time {
	all := map[string]metav1.Time{}
	for _, pod := range pods {
		if d.chance(20) {
			all[pod.Name] = stamp(-d.IntN(25))
		}
	}
	if d.chance(20) {
		all["gone"] = stamp(0)
	}
	return all
}

func (d draw) object() *object {
	value := d.one("0", "1", "3", "100", "0%", "10%", "33%", "50%", "100%", "250%", "33.3%", "many", "-1", "-5%", "")
	edit := maxUnavailable(value)
	if d.chance(50) {
		edit = minAvailable(value)
	}
	o := newObject("web", edit)
	if d.chance(30) {
		o.Spec.ProtectTotalReplicas = ptr.To(int32(d.IntN(15)))
	}
	if d.chance(30) {
		targeted("Deployment", "web")(o)
	}
	o.Generation = int64(d.IntN(3))
	return o
}

func (d draw) total() pub.Total {
	var all []pub.Workload
	for i := range d.IntN(3) {
		all = append(all, pub.Workload{
			UID: types.UID(fmt.Sprint(i)), Replicas: int32(d.IntN(12)), Unknown: d.chance(15), Gone: d.chance(15),
		})
	}
	return pub.TotalOf(all, d.chance(20))
}

// oracle computes the numbers of a status in the dumbest way: pod after pod, and percentages by counting up.
func oracle(
	b pub.Budget, pods []*corev1.Pod, total pub.Total, now time.Time,
) (want [4]int32, disrupted, updated []string) {
	replicas := total.Replicas
	if b.TotalReplicas != nil {
		if replicas = *b.TotalReplicas; total.ScaledDown {
			replicas = 0
		}
	}
	if b.Target != nil && total.Replicas == 0 {
		pods = nil
	} else { // records of pods that are not observed hold for a moment
		kept := func(records map[string]metav1.Time) (all []string) {
			for name, at := range records {
				isPod := func(pod *corev1.Pod) bool { return pod.Name == name }
				if !slices.ContainsFunc(pods, isPod) && now.Sub(at.Time) <= 5*time.Second {
					all = append(all, name)
				}
			}
			return all
		}
		disrupted, updated = kept(b.Status.DisruptedPods), kept(b.Status.UnavailablePods)
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		recorded := false
		if at, ok := b.Status.DisruptedPods[pod.Name]; ok && now.Sub(at.Time) <= 20*time.Second {
			disrupted, recorded = append(disrupted, pod.Name), true
		}
		if at, ok := b.Status.UnavailablePods[pod.Name]; ok && now.Sub(at.Time) <= 10*time.Second && !done(pod, at.Time) {
			updated, recorded = append(updated, pod.Name), true
		}
		if !recorded && pub.Available(pod, pub.Policy{}) {
			want[0]++
		}
	}
	share := func(v string) int32 { // of the replicas, rounded up
		var percent, n int
		if _, err := fmt.Sscanf(v, "%d%%", &percent); err != nil {
			panic(err)
		}
		for n*100 < percent*int(replicas) {
			n++
		}
		return int32(n)
	}
	switch {
	case b.MaxUnavailable != nil && b.MaxUnavailable.StrVal == "33.3%" ||
		b.MinAvailable != nil && b.MinAvailable.StrVal == "33.3%":
		n := int32(0)
		for int64(n)*1000 < 333*int64(replicas) {
			n++
		}
		if want[1] = n; b.MaxUnavailable != nil {
			want[1] = replicas - n
		}
	case b.MaxUnavailable != nil && b.MaxUnavailable.StrVal != "":
		want[1] = replicas - share(b.MaxUnavailable.StrVal)
	case b.MaxUnavailable != nil:
		want[1] = replicas - b.MaxUnavailable.IntVal
	case b.MinAvailable != nil && b.MinAvailable.StrVal != "":
		want[1] = share(b.MinAvailable.StrVal)
	case b.MinAvailable != nil:
		want[1] = b.MinAvailable.IntVal
	}
	want[1] = max(0, want[1])
	want[2] = max(0, want[0]-want[1])
	want[3] = replicas
	slices.Sort(disrupted)
	slices.Sort(updated)
	return want, disrupted, updated
}

// done reports whether a pod shows an update that was admitted at a time.
func done(pod *corev1.Pod, at time.Time) bool {
	running := pod.Status.ContainerStatuses[0].State.Running
	if running == nil || !pub.Available(pod, pub.Policy{}) {
		return false
	}
	var written time.Time
	for _, value := range pod.Annotations {
		var text string
		if _, err := fmt.Sscanf(value, `{"revision":"r","updateTimestamp":%q`, &text); err == nil {
			written, _ = time.Parse(time.RFC3339, text)
		}
	}
	return !written.Before(at) && running.StartedAt.After(at)
}

func TestRecountIsThatOfTheOracle(t *testing.T) {
	d := newDraw(t)
	for range 2000 {
		var pods []*corev1.Pod
		for i := range d.IntN(12) {
			pods = append(pods, d.pod(fmt.Sprint("web-", i)))
		}
		o := d.object()
		recorded(d.records(pods), d.records(pods))(o)
		total, kept := d.total(), o.DeepCopy()
		b, unread := pub.Read(o)
		got := pub.Recount(pub.Input{Budget: b, Counts: counts(pods), Total: total, Now: at(0)})
		want, disrupted, updated := oracle(b, pods, total, at(0))
		if numbers(got.Status) != want {
			t.Fatalf("current, desired, allowed, total are %v, want %v of %+v, %+v", numbers(got.Status), want, o.Spec, total)
		}
		if diff := cmp.Diff([2][]string{disrupted, updated}, [2][]string{
			names(got.Status.DisruptedPods), names(got.Status.UnavailablePods),
		}); diff != "" {
			t.Fatalf("records (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(kept, o); diff != "" {
			t.Fatalf("the budget was changed (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(got, pub.Recount(pub.Input{
			Budget: b, Counts: d.counted(pods), Total: total, Now: at(0),
		})); diff != "" {
			t.Fatalf("counted by events (-listed +counted):\n%s", diff)
		}
		applied(t, o, got, pods, total)
		explained(t, b, unread, got)
	}
}

// counted are the counts of pods after events in any order.
func (d draw) counted(pods []*corev1.Pod) *pub.Counts {
	var c pub.Counts
	for _, i := range d.Perm(len(pods)) {
		for d.chance(40) {
			c.Set(d.pod(pods[i].Name), pub.Policy{})
		}
		if d.chance(20) {
			c.Set(d.pod("passing"), pub.Policy{})
		}
		c.Set(pods[i], pub.Policy{})
	}
	c.Remove("passing")
	c.Remove("never there")
	return &c
}

// applied checks that a status that was written is written once.
func applied(t *testing.T, o *object, r pub.Result, pods []*corev1.Pod, total pub.Total) {
	t.Helper()
	o = o.DeepCopy()
	o.Status = r.Status
	if again := pub.Recount(pub.Input{Budget: read(o), Counts: counts(pods), Total: total, Now: at(0)}); again.Changed {
		t.Fatalf("a written status changes to\n%+v\nfrom\n%+v", again.Status, r.Status)
	}
	if held := len(r.Status.DisruptedPods) + len(r.Status.UnavailablePods); (held > 0) != (r.RequeueAfter > 0) ||
		r.RequeueAfter > 21*time.Second {
		t.Fatalf("%d records, and looks again after %v", held, r.RequeueAfter)
	}
}

// explained checks that a budget that cannot work says so.
func explained(t *testing.T, b pub.Budget, unread []note.Note, r pub.Result) {
	t.Helper()
	s, has := r.Status, map[string]bool{}
	for _, n := range append(unread, r.Notes...) {
		if has[n.Code] = true; n.Text == "" {
			t.Fatalf("note %+v has no text", n)
		}
	}
	refuses := s.UnavailableAllowed == 0 && s.DesiredAvailable > 0
	if never := s.TotalReplicas >= 0 && s.DesiredAvailable >= s.TotalReplicas; refuses && never &&
		!has[pub.NoteNoneAllowed] {
		t.Fatalf("%+v refuses for ever, and the notes are %v", s, r.Notes)
	}
	number := b.MaxUnavailable == nil && b.MinAvailable != nil && b.MinAvailable.StrVal == ""
	if s.TotalReplicas < 0 && !number && !has[pub.NoteUnknownReplicas] && !has[pub.NoteNoAmount] {
		t.Fatalf("%+v protects nothing, and the notes are %v", s, r.Notes)
	}
}

func names(of map[string]metav1.Time) []string { return slices.Sorted(maps.Keys(of)) }
