//go:build envtest

package podscope_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podscope"
)

// From the creation of a set to the first pod that is sent; sets that come at once are written together.
func testLatency(b *bench) {
	b.create()
	b.start(b.overURL())
	b.until("there is no entry", func() bool { return len(b.read().Webhooks) == 1 })
	namespace := b.Namespace(b.T)
	b.dryRun(namespace, "nobodys")
	const tries = 8
	took := make([]time.Duration, 0, tries)
	for i := range tries {
		app := fmt.Sprintf("app-%d", i)
		b.set(app, app)
		began := time.Now()
		b.until("a pod of "+app+" is not sent", func() bool {
			b.dryRun(namespace, app)
			return b.sent(app) > 0
		})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.Logf("from the set to the first pod sent: median %s, p99 %s, %d writes for %d sets",
		took[tries/2], took[tries-1], b.written(), tries)

	before := b.written()
	for i := range 40 {
		b.set(fmt.Sprintf("many-%d", i), fmt.Sprintf("many-%d", i))
	}
	b.until("the last of many is not sent", func() bool {
		b.dryRun(namespace, "many-39")
		return b.sent("many-39") > 0
	})
	b.Logf("%d writes for 40 sets at once", b.written()-before)
	if n := b.written() - before; n > 30 {
		b.Errorf("%d writes for 40 sets at once", n)
	}
	if b.sent("nobodys") > 0 {
		b.Error("a pod that nothing selects was sent")
	}
	if err := b.Client.DeleteAllOf(b.Context(), &v1beta1.SidecarSet{}); err != nil {
		b.Fatal(err)
	}
	b.until("pods of sets that are gone are sent", func() bool {
		before := b.sent("app-0")
		b.dryRun(namespace, "app-0")
		return b.sent("app-0") == before
	})
}

// A client puts the object back to what is written elsewhere, whenever it is not that. Both would write all day; this
// side does so less and less, says why, and does not stop doing what it is there for.
func testAdversary(b *bench) {
	c := b.create()
	stop, undone := b.undo(func(now *configuration) bool {
		if len(now.Webhooks) == 0 && len(now.Annotations) == 0 {
			return false
		}
		now.Webhooks, now.Annotations = nil, nil
		return true
	}, c.Name)
	b.start(b.overURL())
	b.until("it gave up", func() bool { return undone() >= 4 })
	b.until("no event says so", func() bool {
		select {
		case e := <-b.events.Events:
			return strings.Contains(e, "PodScopeUndone")
		default:
			return false
		}
	})
	writes, reverts := b.written(), undone()
	b.Logf("%d writes and %d reverts", writes, reverts)
	if writes > 2*reverts+2 {
		b.Errorf("%d writes for %d reverts", writes, reverts)
	}
	// The pauses are 1, 2, 4 seconds by now: a new set is not kept waiting by them.
	began := time.Now()
	b.set("new", "new")
	b.until("a new set waits for the quarrel", func() bool { return undone() > reverts })
	b.Logf("a new set was written after %s", time.Since(began))
	stop()
	b.until("there are no entries in the end", func() bool { return len(b.read().Webhooks) == 1 })
}

// undo changes the configuration whenever another client has, as another controller would.
func (b *bench) undo(change func(*configuration) bool, name string) (stop func(), times func() int) {
	b.Helper()
	watching, err := client.NewWithWatch(b.Config, client.Options{Scheme: b.scheme})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	events, err := watching.Watch(ctx, &admissionregistrationv1.MutatingWebhookConfigurationList{},
		client.MatchingFields{"metadata.name": name})
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			now, is := e.Object.(*configuration)
			if !is || !change(now) {
				continue
			}
			if watching.Update(ctx, now) == nil {
				mu.Lock()
				n++
				mu.Unlock()
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		events.Stop()
		<-done
	})
	b.Cleanup(stop)
	return stop, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// A cloud adds requirements to every entry, and an admin has another policy. Both stay, and no reconciler writes
// against them.
func testEnforcer(b *bench) {
	c := b.create()
	theirs := metav1.LabelSelectorRequirement{
		Key: "cloud.example.com/managed", Operator: metav1.LabelSelectorOpDoesNotExist,
	}
	_, times := b.undo(func(now *configuration) bool {
		changed := false
		for i := range now.Webhooks {
			s := now.Webhooks[i].NamespaceSelector
			if !slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
				return r.Key == theirs.Key
			}) {
				s.MatchExpressions, changed = append(s.MatchExpressions, theirs), true
				now.Webhooks[i].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
			}
		}
		return changed
	}, c.Name)
	b.start(b.overURL())
	b.until("nothing was enforced", func() bool { return times() == 1 })
	for i := range 5 {
		app := fmt.Sprintf("app-%d", i)
		b.set(app, app)
		b.until("the set is not in", func() bool {
			return strings.Contains(b.read().Webhooks[0].MatchConditions[0].Expression, "'"+app+"'")
		})
	}
	w := b.read().Webhooks[0]
	if times() != 1 || *w.FailurePolicy != admissionregistrationv1.Ignore ||
		len(w.NamespaceSelector.MatchExpressions) != 3 {
		b.Errorf("enforced %d times: %s %+v", times(), *w.FailurePolicy, w.NamespaceSelector)
	}
	if n := b.written(); n > 8 {
		b.Errorf("%d writes for five sets", n)
	}
	told := 0
	for len(b.events.Events) > 0 {
		if strings.Contains(<-b.events.Events, "set its failurePolicy to Ignore, which was Fail") {
			told++
		}
	}
	if told != 1 {
		b.Errorf("told %d times that a policy was changed", told)
	}
}

// With a service, the CA is that of the main configuration, from the first moment of an entry.
func testAuthority(b *bench) {
	c := b.create()
	var mu sync.Mutex
	var without []string
	b.undo(func(now *configuration) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range now.Webhooks {
			if len(w.ClientConfig.CABundle) == 0 {
				without = append(without, w.Name)
			}
		}
		return false
	}, c.Name)
	b.start(podscope.Options{})
	main := &configuration{ObjectMeta: metav1.ObjectMeta{Name: podscope.DefaultMainConfiguration}, Webhooks: []entry{{
		Name:                    "mcloneset.kb.io",
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: podscope.DefaultNamespace, Name: podscope.DefaultService,
		}},
	}}}
	if err := b.Client.Create(b.Context(), main); err != nil {
		b.Fatal(err)
	}
	b.until("the missing CA is not reported", func() bool {
		select {
		case e := <-b.events.Events:
			return strings.Contains(e, "no configuration has a CA")
		default:
			return false
		}
	})
	if n := b.written(); n > 0 {
		b.Errorf("%d writes without a CA", n)
	}
	ca := b.overURL().CABundle
	patch := client.MergeFrom(main.DeepCopy())
	main.Webhooks[0].ClientConfig.CABundle = ca
	if err := b.Client.Patch(b.Context(), main, patch); err != nil {
		b.Fatal(err)
	}
	b.until("there is no entry", func() bool { return len(b.read().Webhooks) == 1 })
	got := b.read().Webhooks[0].ClientConfig
	if string(got.CABundle) != string(ca) || got.Service == nil || *got.Service.Path != "/mutate-pod" {
		b.Errorf("%+v", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(without) > 0 {
		b.Errorf("there were entries without a CA: %v", without)
	}
}

// Without the webhook there are no entries, also of an earlier time; those of others stay.
func testOff(b *bench) {
	c := b.create()
	entryOf := func(name string) entry {
		return entry{
			Name:                    name,
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: ptr.To(b.hook.URL)},
		}
	}
	c.Webhooks = []entry{entryOf("mpod.kb.io"), entryOf("theirs.example.com"), entryOf("mpod-open-0a1b2c3d.kb.io")}
	if err := b.Client.Update(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	o := b.overURL()
	o.Off = true
	b.start(o)
	b.until("entries are left", func() bool {
		w := b.read().Webhooks
		return len(w) == 1 && w[0].Name == "theirs.example.com"
	})
}

// A set that the Go type cannot hold is in the way of no other.
func testMalformed(b *bench) {
	b.create()
	raw := []byte(`{"apiVersion":"apps.kruise.io/v1beta1","kind":"SidecarSet","metadata":{"name":"odd"},"spec":{"selector":{"matchLabels":{"app":"odd"}},"containers":[{"name":"x","image":5}]}}`)
	odd := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "odd"}}
	if err := b.Client.Patch(b.Context(), odd, client.RawPatch(types.ApplyPatchType, raw),
		client.FieldOwner("test"), client.ForceOwnership); err != nil && !strings.Contains(err.Error(), "cannot unmarshal") {
		b.Fatal(err)
	}
	b.set("web", "web")
	b.start(b.overURL())
	b.until("sets are missing", func() bool {
		w := b.read().Webhooks
		return len(w) == 1 && strings.Contains(w[0].MatchConditions[0].Expression, "'odd','web'")
	})
}

// A configuration that is missing or deleted is created at once, and one that is reset is repaired within a second.
func testMissing(b *bench) {
	b.set("web", "web")
	b.start(b.overURL())
	there := func() bool {
		c := &configuration{}
		return b.Client.Get(b.Context(), client.ObjectKey{Name: podscope.DefaultConfiguration}, c) == nil &&
			len(c.Webhooks) == 1
	}
	b.until("it is not created", there)
	var took []time.Duration
	for i := range 3 {
		c := b.read()
		began := time.Now()
		if i%2 == 0 {
			if err := b.Client.Delete(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		} else {
			c.Webhooks, c.Annotations = nil, nil
			if err := b.Client.Update(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
		b.until("it does not come back", there)
		took = append(took, time.Since(began))
	}
	b.Logf("deletions and resets in a row were repaired after %s", took)
	if took[0] > time.Second || took[1] > 2*time.Second { // the machine may be busy
		b.Errorf("the first ones after %s", took[:2])
	}
	if n := b.written(); n != 4 {
		b.Errorf("%d writes for a creation and 3 repairs", n)
	}
	reported := 0
	b.until("it is not reported", func() bool { // after the write
		for len(b.events.Events) > 0 {
			if strings.Contains(<-b.events.Events, "PodScopeUndone") {
				reported++
			}
		}
		return reported >= 3
	})
	if reported != 3 {
		b.Errorf("%d events for 3 repairs", reported)
	}
}

// The leader alone writes. The next leader finds the entries as they should be, and writes nothing.
func testReplicas(b *bench) {
	b.create()
	b.set("web", "web")
	namespace := b.Namespace(b.T)
	stops := map[int]func(){}
	elected := map[int]<-chan struct{}{}
	for number := range 2 {
		mgr, stop := b.replica(number, b.overURL(), b.leading(namespace))
		stops[number], elected[number] = stop, mgr.Elected()
	}
	b.until("there is no entry", func() bool { return len(b.read().Webhooks) == 1 })
	first := b.writer()
	if first < 0 || b.written() != 1 {
		b.Fatalf("%d writes by %v", b.written(), b.by)
	}
	stops[first]()
	select {
	case <-elected[1-first]:
	case <-b.Context().Done():
		b.Fatal("the other replica does not lead")
	}
	b.set("shop", "shop")
	b.until("the next leader writes nothing", func() bool {
		return strings.Contains(b.read().Webhooks[0].MatchConditions[0].Expression, "'shop'")
	})
	if b.by[first] != 1 || b.by[1-first] != 1 {
		b.Errorf("writes by replica: %v", b.by)
	}
}

// Sets are followed also where their kind is installed after the start.
func testLateKind(b *bench) {
	b.create()
	crd := b.uninstall()
	o := b.overURL()
	o.LookFor = 50 * time.Millisecond
	b.start(o)
	b.until("there is no entry", func() bool { return len(b.read().Webhooks) == 1 })
	b.install(crd)
	b.set("late", "late")
	b.until("the set is not in", func() bool {
		return strings.Contains(b.read().Webhooks[0].MatchConditions[0].Expression, "'late'")
	})
}

// The pods of a namespace are sent from its first object on until minutes after the last one is gone, and those of
// other namespaces never.
func testNamespace(b *bench) {
	b.create()
	var later atomic.Int64
	o := b.overURL()
	o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	b.start(o)
	namespace, other := b.Namespace(b.T), b.Namespace(b.T)
	newSpread := func(name string) *v1beta1.WorkloadSpread {
		spread := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		spread.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "batch/v1", Kind: "Job", Name: name}
		spread.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "a"}}
		if err := b.Client.Create(b.Context(), spread); err != nil {
			b.Fatal(err)
		}
		return spread
	}
	first := newSpread("first")
	b.until("a pod of the namespace is not sent", func() bool {
		b.dryRun(namespace, "mine")
		return b.sent("mine") > 0
	})
	before := b.written()
	for i := range 20 {
		if err := b.Client.Delete(b.Context(), newSpread(fmt.Sprintf("further-%d", i))); err != nil {
			b.Fatal(err)
		}
	}
	b.dryRun(other, "theirs")
	if n := b.written() - before; n > 0 || b.sent("theirs") > 0 {
		b.Errorf("%d writes for further objects, %d pods of another namespace were sent", n, b.sent("theirs"))
	}
	if err := b.Client.Delete(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	b.until("the namespace does not leave", func() bool {
		later.Add(int64(time.Minute))
		newSpread("wakes").Namespace = namespace
		if err := b.Client.DeleteAllOf(b.Context(), &v1beta1.WorkloadSpread{}, client.InNamespace(namespace)); err != nil {
			b.Fatal(err)
		}
		calls := b.sent("mine")
		b.dryRun(namespace, "mine")
		return b.sent("mine") == calls
	})
}
