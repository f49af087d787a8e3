//go:build envtest

package podscope_test

import (
	"fmt"
	"strings"
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

// Pods of a set are sent to the webhook from its creation until its deletion, and pods of no set never.
func testLatency(b *bench) {
	b.create()
	b.start(b.overURL())
	b.until("there is no entry", func() bool { return len(b.read().Webhooks) == 1 })
	b.dryRun(b.Namespace, "nobodys")
	b.set("app")
	b.until("a pod of the set is not sent", func() bool {
		b.dryRun(b.Namespace, "app")
		return b.sent("app") > 0
	})
	if b.sent("nobodys") > 0 {
		b.Error("a pod that nothing selects was sent")
	}
	if err := b.Client.DeleteAllOf(b.Context(), &v1beta1.SidecarSet{}); err != nil {
		b.Fatal(err)
	}
	b.until("pods of a set that is gone are sent", func() bool {
		before := b.sent("app")
		b.dryRun(b.Namespace, "app")
		return b.sent("app") == before
	})
}

// Sets are followed also where their kind is installed after the start.
func testLateKind(b *bench) {
	b.create()
	o := b.overURL()
	o.LookFor = 50 * time.Millisecond
	b.start(o)
	b.until("there is no entry", func() bool { return len(b.read().Webhooks) == 1 })
	if err := b.cluster.InstallCRDs(b.Context(), "../../config/crd/bases/apps.kruise.io_sidecarsets.yaml"); err != nil {
		b.Fatal(err)
	}
	b.set("late")
	b.until("the set is not in", func() bool {
		return strings.Contains(b.read().Webhooks[0].MatchConditions[0].Expression, "'late'")
	})
}

// With a service, the CA is that of the main configuration.
func testAuthority(b *bench) {
	b.create()
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
	b.until("the missing CA is not reported", func() bool { return b.emitted("no configuration has a CA") })
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
	b.set("web")
	b.start(b.overURL())
	b.until("sets are missing", func() bool {
		w := b.read().Webhooks
		return len(w) == 1 && strings.Contains(w[0].MatchConditions[0].Expression, "'odd','web'")
	})
}

// A configuration that is missing is created at once, also after a deletion, which is reported.
func testMissing(b *bench) {
	b.set("web")
	b.start(b.overURL())
	there := func() bool {
		c := &configuration{}
		return b.Client.Get(b.Context(), client.ObjectKey{Name: podscope.DefaultConfiguration}, c) == nil &&
			len(c.Webhooks) == 1
	}
	b.until("it is not created", there)
	if err := b.Client.Delete(b.Context(), b.read()); err != nil {
		b.Fatal(err)
	}
	b.until("it does not come back", there)
	if n := b.written(); n != 2 {
		b.Errorf("%d writes for a creation and a repair", n)
	}
	b.until("it is not reported", func() bool { return b.emitted("PodScopeUndone") })
}

// emitted reports whether the next event has a text.
func (b *bench) emitted(text string) bool {
	select {
	case e := <-b.events.Events:
		return strings.Contains(e, text)
	default:
		return false
	}
}

// Without sets and configurations, whose events would start a pass, the entries are written and in force all the same:
// controllers wait for them.
func testInForce(b *bench) {
	var inForce atomic.Bool
	o := b.overURL()
	o.InForce = func() { inForce.Store(true) }
	b.start(o)
	b.until("the entries are not in force", inForce.Load)
}

// The pods of a namespace are sent from its first object on until minutes after the last one is gone, and those of
// other namespaces never.
func testNamespace(b *bench) {
	b.create()
	var later atomic.Int64
	o := b.overURL()
	o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	b.start(o)
	namespace, other := b.Namespace, b.cluster.Namespace(b.T)
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
	for i := range 5 {
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
