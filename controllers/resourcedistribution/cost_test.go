package resourcedistribution_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
)

func same(c client.WithWatch) client.WithWatch { return c }

// A thousand namespaces cost one write each and one status, a new content the same with a read, an idle pass nothing,
// and a restart no write.
func TestCost(t *testing.T) {
	m := newModel(t)
	const n = 1000
	for i := range n {
		m.namespace(fmt.Sprintf("ns-%04d", i), nil)
	}
	m.distribute("registry", plain, `"allNamespaces":true`)
	turn := func(what string, want map[string]int) {
		t.Helper()
		begun := time.Now()
		m.must("registry")
		if diff := cmp.Diff(want, count(m.requests())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		t.Logf("%s: %v", what, time.Since(begun).Round(time.Millisecond))
	}
	turn("creation", map[string]int{"POST": n, "status": 1})
	turn("an idle pass", map[string]int{})
	m.distribute("registry", strings.Replace(plain, "reader", "writer", 1), `"allNamespaces":true`)
	turn("a new content", map[string]int{"GET": n, "PATCH": n, "status": 1})
	m.edit("ns-0500", func(s *corev1.Secret) { s.Data = nil })
	turn("one drift", map[string]int{"GET": 1, "PATCH": 1})
	m.restart(same)
	turn("a restart", map[string]int{"GET": n})
	turn("an idle pass", map[string]int{})
	m.distribute("registry", plain, ``)
	turn("no targets", map[string]int{"DELETE": n, "status": 1})
}

// A tenant that changes or deletes a copy again and again costs a write in two seconds, and one that only touches it
// costs none.
func TestContested(t *testing.T) {
	m := newModel(t)
	m.namespace("shop", nil)
	m.distribute("registry", plain, `"allNamespaces":true`)
	m.must("registry")
	m.requests()
	for second := 1; second <= 40; second++ {
		switch is := m.secret("shop"); {
		case is != nil && second%2 == 0:
			m.remove("shop")
		case is != nil:
			m.edit("shop", func(s *corev1.Secret) { s.Data = nil })
		}
		m.Advance(time.Second)
		result, err := m.turn("registry")
		if err != nil || (second%2 == 0) != (result.RequeueAfter > 0) || result.RequeueAfter > distribution.RepairPause {
			t.Errorf("second %d: again after %v, %v", second, result.RequeueAfter, err)
		}
	}
	if got := count(m.requests()); got["POST"]+got["PATCH"] != 20 {
		t.Errorf("requests %v", got)
	}
	m.Advance(time.Minute)
	m.must("registry")
	if s := m.secret("shop"); s == nil || string(s.Data["user"]) != "reader" || m.picture("registry") != "1 of 1" {
		t.Errorf("a minute later: %v, %s", s, m.picture("registry"))
	}
	m.requests()
	m.Advance(distribution.RepairPause)
	for i := range 20 {
		m.edit("shop", func(s *corev1.Secret) { s.Labels = map[string]string{"x": fmt.Sprint(i)} })
		m.must("registry")
	}
	if diff := cmp.Diff(map[string]int{"GET": 20}, count(m.requests())); diff != "" {
		t.Errorf("a copy that is only touched (-want +got):\n%s", diff)
	}
}

// What the cache lacks or shows as it was is read live: an own copy costs no write, and a foreign object is a conflict.
func TestStaleCache(t *testing.T) {
	m := newModel(t)
	m.namespace("own", nil)
	m.namespace("shop", nil)
	m.distribute("registry", plain, `"includedNamespaces":{"list":[{"name":"own"}]}`)
	m.must("registry")
	before := m.Server.Snapshot()
	m.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pull"}})
	m.edit("own", func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} })
	m.distribute("registry", plain, `"allNamespaces":true`)
	m.options.Live = m.Live
	lagging := m.Server.Lagging()
	lagging.View = before
	lagging.Only = func(o runtime.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind == "SecretList" }
	m.restart(func(client.WithWatch) client.WithWatch { return lagging })
	m.requests()
	m.must("registry")
	if diff := cmp.Diff([]string{"POST shop/pull failed", "PATCH status registry"}, m.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := m.picture("registry"); !strings.HasPrefix(got, "1 of 2; ConflictOccurred [shop]") {
		t.Errorf("the status is %s", got)
	}
}

// One namespace whose webhook is down, and one with a quota, keep no other from its copy, and are tried again.
func TestOneBadNamespace(t *testing.T) {
	m := newModel(t)
	broken := true
	m.restart(func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				switch {
				case broken && o.GetNamespace() == "ns-000":
					return apierrors.NewInternalError(fmt.Errorf("failed calling webhook"))
				case broken && o.GetNamespace() == "ns-001":
					panic("a bug")
				}
				return c.Create(ctx, o, opts...)
			},
		})
	})
	for i := range 200 {
		m.namespace(fmt.Sprintf("ns-%03d", i), nil)
	}
	m.distribute("registry", plain, `"allNamespaces":true`)
	if _, err := m.turn("registry"); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("the failure is not retried: %v", err)
	}
	if got := m.picture("registry"); !strings.HasPrefix(got,
		"198 of 200; CreateResourceFailed [ns-000 ns-001]: Internal error occurred: failed calling webhook; panic: a bug") {
		t.Errorf("the status is %s", got)
	}
	broken = false
	m.requests()
	m.must("registry")
	if diff := cmp.Diff([]string{"POST ns-000/pull", "POST ns-001/pull", "PATCH status registry"},
		m.requests()); diff != "" || m.picture("registry") != "200 of 200" {
		t.Errorf("%s (-want +got):\n%s", m.picture("registry"), diff)
	}
}

// Copies and a status as the reference leaves them: with an owner of the older version, a status without our texts, and
// a resource that the reference would write at each reconcile. Nothing is written.
func TestTakeover(t *testing.T) {
	m := newModel(t)
	d := m.distribute("registry", plain, `"includedNamespaces":{"list":[{"name":"cart"},{"name":"shop"}]}`)
	d.Status = v1beta1.ResourceDistributionStatus{Desired: 2, Succeeded: 2, ObservedGeneration: 1}
	for _, c := range conditionTypes() {
		d.Status.Conditions = append(d.Status.Conditions, v1beta1.ResourceDistributionCondition{
			Type: c, Status: "False", Reason: "Succeeded", LastTransitionTime: metav1.NewTime(m.Clock.Add(-time.Hour)),
		})
	}
	m.put(d)
	for _, n := range []string{"cart", "shop", "other"} {
		m.namespace(n, nil)
	}
	for _, n := range []string{"cart", "shop"} {
		m.put(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: n, Name: "pull",
				Annotations: map[string]string{
					v1beta1.ResourceDistributionHashAnnotation: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
					v1beta1.ResourceDistributionFromAnnotation: "registry",
				},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion:         "apps.kruise.io/v1alpha1",
					Kind:               "ResourceDistribution",
					Name:               "registry",
					UID:                d.UID,
					Controller:         ptr.To(true),
					BlockOwnerDeletion: ptr.To(true),
				}},
			},
			Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"user": []byte("reader")},
		})
	}
	m.must("registry")
	if diff := cmp.Diff([]string{"GET cart/pull", "GET shop/pull"}, m.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	m.edit("shop", func(s *corev1.Secret) { s.Data = nil })
	m.must("registry")
	if ref := m.secret("shop").OwnerReferences[0]; ref.APIVersion != "apps.kruise.io/v1beta1" {
		t.Errorf("the next write leaves the owner %s", ref.APIVersion)
	}
}

// What the API server stores and nothing can be made of is reported, once by an event.
func TestInvalid(t *testing.T) {
	for name, c := range map[string][3]string{
		"no kind": {`{}`, `"allNamespaces":true`, "0 of 1; CreateResourceFailed [shop]: spec.resource: Internal error"},
		"a bad key": {
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"a/b":"x"}}`, `"allNamespaces":true`,
			"0 of 1; CreateResourceFailed [shop]: spec.resource.data[a/b]: Invalid value",
		},
		"a bad target": {
			plain, `"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Like"}]}`,
			"0 of 0; GetResourceFailed []: spec.targets: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.namespace("shop", nil)
			d := m.distribute("registry", c[0], c[1])
			m.must("registry")
			m.must("registry")
			if got := m.picture("registry"); !strings.HasPrefix(got, c[2]) {
				t.Errorf("the status is %s", got)
			}
			if events := m.Server.Events(d, "InvalidSpec"); len(events) != 1 || m.secret("shop") != nil {
				t.Errorf("events %v", events)
			}
			if diff := cmp.Diff([]string{"PATCH status registry"}, m.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
