//go:build envtest

package podscope_test

import (
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// A set that was admitted, and that another webhook refused then, leaves an entry that is in force for its time and
// goes. To write it takes no more rights than the manager has.
func testLost(b *bench) {
	b.create()
	var later atomic.Int64
	o := b.overURL()
	o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	b.start(o)
	b.until("there is no entry", func() bool { return len(b.read().Webhooks) == 1 })
	limited, err := client.New(b.Config, client.Options{Scheme: b.Scheme})
	if err != nil {
		b.Fatal(err)
	}
	w, err := scope.NewWriter(limited, scope.WriterOptions{
		Reach: scope.Reach{URL: o.URL, CABundle: o.CABundle}, Timeout: time.Minute,
	})
	if err != nil {
		b.Fatal(err)
	}
	refused := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "refused", UID: "some", Generation: 1}}
	refused.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "refused"}}
	if err := w.Cover(b.Context(), refused); err != nil {
		b.Fatal(err)
	}
	b.until("its pods are not sent", func() bool {
		b.dryRun(b.Namespace, "refused")
		return b.sent("refused") > 0
	})
	left := func() bool {
		c := &configuration{}
		err := b.Client.Get(b.Context(), client.ObjectKey{Name: scope.ProvisionalConfiguration}, c)
		return err == nil && slices.ContainsFunc(c.Webhooks, func(w entry) bool { return scope.IsProvisional(w.Name) })
	}
	if !left() {
		b.Fatal("the entry went before its time")
	}
	before := b.written()
	later.Store(int64(time.Hour))
	b.set("wakes")
	b.until("the entry is left", func() bool { return !left() })
	if n := b.written() - before; n > 2 {
		b.Errorf("%d writes", n)
	}
	calls := b.sent("refused")
	b.until("its pods are still sent", func() bool {
		calls = b.sent("refused")
		b.dryRun(b.Namespace, "refused")
		return b.sent("refused") == calls
	})
}
