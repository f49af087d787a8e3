package pub_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/pub"
)

// FuzzEffect has pods of any shape: nothing panics, no change is harmless, and the input stays.
func FuzzEffect(f *testing.F) {
	seed := func(pod *corev1.Pod) []byte {
		text, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	f.Add(seed(newPod("a", fed)), seed(newPod("a", fed, image("web:2"))), "", true)
	f.Add(seed(newPod("a", resources("cpu", "1"))), seed(newPod("a", resources("cpu", "2"))), "resize", false)
	f.Add([]byte(`{}`), []byte(`{"spec":{"containers":[{}]}}`), "status", true)
	f.Add(seed(newPod("a", withInit(true), halfUpdated)), seed(newPod("a", terminating)), "", true)
	f.Fuzz(func(t *testing.T, x, y []byte, subresource string, daemon bool) {
		var before, after corev1.Pod
		if json.Unmarshal(x, &before) != nil || json.Unmarshal(y, &after) != nil {
			return
		}
		p := pub.Policy{Installed: inplace.Installation{EnvDaemon: daemon, Resize: daemon}, Resizes: daemon}
		kept := [2]*corev1.Pod{before.DeepCopy(), after.DeepCopy()}
		switch got := pub.Effect(&before, &after, subresource, p); got {
		case pub.Harmless, pub.Update, pub.Resize:
		default:
			t.Errorf("an update is %q", got)
		}
		if got := pub.Effect(&before, before.DeepCopy(), subresource, p); got != pub.Harmless {
			t.Errorf("no change is %q", got)
		}
		v := pub.Review(newBudget(with(1, 1)), pub.Disruption{Pod: &before, Operation: pub.Delete, Policy: p}, at(0))
		if v.Reason == "" || !v.Allowed {
			t.Errorf("the verdict is %+v", v)
		}
		counted := pub.Budget{}.Count([]*corev1.Pod{&before, &after}, p)
		if n := counted.Active(); n < 0 || n > 2 {
			t.Errorf("%d of 2 pods are active", n)
		}
		if !equal(kept[0], &before) || !equal(kept[1], &after) {
			t.Error("a pod was changed")
		}
	})
}

// FuzzRead has budgets of any shape: nothing panics, and the status makes sense.
func FuzzRead(f *testing.F) {
	for _, o := range []*object{
		newObject("a", maxUnavailable("30%"), protectTotal(5)), newObject("a", minAvailable("9999999999999%")),
		newObject("a", targeted("Deployment", "web")),
		newObject("a", recorded(records(0, 3, 0), records(0, 3, -60))), newObject("a", func(b *object) {
			b.Annotations = older("DELETE, BOGUS", "99999999999")
		}),
	} {
		text, err := json.Marshal(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, int32(10), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, replicas int32, unknown bool) {
		var o object
		if json.Unmarshal(text, &o) != nil {
			return
		}
		kept := o.DeepCopy()
		b, _ := pub.Read(&o)
		pub.Validate(&o, []*object{newObject("other")})
		pub.ValidateOlder(o.Annotations)
		total := pub.TotalOf([]pub.Workload{{UID: "1", Replicas: replicas, Unknown: unknown}}, false)
		r := pub.Recount(pub.Input{Budget: b, Counts: counts(pods(3, unready)), Total: total, Now: at(0)})
		s := r.Status
		if s.UnavailableAllowed < 0 || s.DesiredAvailable < 0 || s.CurrentAvailable < 0 || s.CurrentAvailable > 2 ||
			r.RequeueAfter < 0 {
			t.Errorf("the status is %+v, again after %v", s, r.RequeueAfter)
		}
		o.Status = s
		if again := pub.Recount(pub.Input{
			Budget: read(&o), Counts: counts(pods(3, unready)), Total: total, Now: at(0),
		}); again.Changed {
			t.Errorf("a written status changes to %+v", again.Status)
		}
		if v := pub.Review(read(&o), pub.Disruption{Pod: newPod("web-1"), Operation: pub.Evict}, at(0)); v.Reason == "" ||
			v.Reason == pub.Unsynced {
			t.Errorf("the verdict is %+v", v)
		}
		o.Status = kept.Status
		if !equal(kept, &o) {
			t.Error("the budget was changed")
		}
	})
}
