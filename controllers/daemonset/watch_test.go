package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// An event of a node wakes the sets for which the node becomes another one, and no others.
func TestNodeEvents(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, time.Now)
	put := func(name, of string, updates *metav1.LabelSelector) {
		set := &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		set.Spec.Template.Spec.NodeSelector = map[string]string{"of": of}
		set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{Selector: updates}
		if err := server.Put(set); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 { // each on the nodes of its own label
		put(fmt.Sprint("set-", i), fmt.Sprint(i), nil)
	}
	put("canary", "0", &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}})
	r, err := New(server, Options{Live: server})
	if err != nil {
		t.Fatal(err)
	}
	node := func(changes ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"of": "0"}}}
		for _, change := range changes {
			change(n)
		}
		return n
	}
	label := func(key, value string) func(*corev1.Node) { return func(n *corev1.Node) { n.Labels[key] = value } }
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: effect}} }
	}
	for why, c := range map[string]struct {
		before, after *corev1.Node
		want          []string
	}{
		"a node joins":                    {nil, node(), []string{"canary", "set-0"}},
		"a node goes":                     {node(), nil, []string{"canary", "set-0"}},
		"a node joins that takes no pods": {nil, node(taint(corev1.TaintEffectNoExecute)), nil},
		"a heartbeat": {
			node(), node(func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready"}} }), nil,
		},
		"a label that nothing looks at":    {node(), node(label("x", "y")), nil},
		"a label that one selects":         {node(), node(label("canary", "true")), []string{"canary"}},
		"a node moves from one to another": {node(), node(label("of", "7")), []string{"canary", "set-0", "set-7"}},
		"a taint": {
			node(), node(taint(corev1.TaintEffectNoSchedule)), []string{"canary", "set-0"},
		},
		"a taint that changes its effect": {
			node(taint(corev1.TaintEffectNoSchedule)), node(taint(corev1.TaintEffectNoExecute)), []string{"canary", "set-0"},
		},
		"a taint that changes nothing for 0": {
			node(taint(corev1.TaintEffectNoExecute)), node(taint(corev1.TaintEffectNoExecute), label("canary", "true")), nil,
		},
	} {
		t.Run(why, func(t *testing.T) {
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			h := r.nodeEvents()
			switch {
			case c.before == nil:
				h.Create(t.Context(), event.CreateEvent{Object: c.after}, queue)
			case c.after == nil:
				h.Delete(t.Context(), event.DeleteEvent{Object: c.before}, queue)
			default:
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}, queue)
			}
			var got []string
			for range queue.Len() {
				request, _ := queue.Get()
				got = append(got, request.Name)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("woken: %v, want %v", got, c.want)
			}
		})
	}
}

// An orphan reconciles the sets that its name can come from.
func TestOrphanEvents(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, time.Now)
	long := strings.Repeat("log-agent-", 6)
	for _, name := range []string{"web", long + "a", long + "b"} {
		if err := server.Put(&v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(server, Options{Live: server})
	if err != nil {
		t.Fatal(err)
	}
	for why, c := range map[string]struct {
		pod  string
		want []string
	}{
		"the set of the name": {"web-x7k2p", []string{"web"}},
		"no set":              {"db-x7k2p", nil},
		"no dash":             {"web", nil},
		"a name that is cut":  {long[:52] + "-5b79945866", nil}, // the next pass of the set adopts it
	} {
		var got []string
		for _, request := range r.kit.OfOrphan(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: c.pod,
		}}) {
			got = append(got, request.Name)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: pod %s reconciles %v, want %v", why, c.pod, got, c.want)
		}
	}
}
