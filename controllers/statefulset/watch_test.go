package statefulset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Which sets an object without a controlling set reconciles.
func TestWatches(t *testing.T) {
	o := observe(t, 1)
	for _, name := range []string{"web", "my-web"} {
		if err := o.server.Put(&v1beta1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(o.server, o.options)
	if err != nil {
		t.Fatal(err)
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	controlled := meta("web-3")
	controlled.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o.set, gvk())}
	cases := map[string]struct {
		why    string
		object client.Object
		want   []string
	}{
		"claim": {
			"the set of the claim's name", &corev1.PersistentVolumeClaim{ObjectMeta: meta("data-web-3")}, []string{"web"},
		},
		"claim with dashes": {
			"either set may have the claim",
			&corev1.PersistentVolumeClaim{ObjectMeta: meta("my-data-my-web-3")},
			[]string{"my-web", "web"},
		},
		"claim of no set": {"no such set exists", &corev1.PersistentVolumeClaim{ObjectMeta: meta("data-db-3")}, nil},
		"claim without a number": {
			"no pod has such a claim", &corev1.PersistentVolumeClaim{ObjectMeta: meta("data-web-x")}, nil,
		},
		"orphan":         {"the set may adopt the pod", &corev1.Pod{ObjectMeta: meta("web-3")}, []string{"web"}},
		"controlled pod": {"another watch has the pods of sets", &corev1.Pod{ObjectMeta: controlled}, nil},
		"pod of no set":  {"no such set exists", &corev1.Pod{ObjectMeta: meta("db-3")}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var requests []reconcile.Request
			if _, is := c.object.(*corev1.Pod); is {
				requests = r.kit.OfOrphan(t.Context(), c.object)
			} else {
				requests = r.setsOfClaim(t.Context(), c.object)
			}
			var got []string
			for _, request := range requests {
				got = append(got, request.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
