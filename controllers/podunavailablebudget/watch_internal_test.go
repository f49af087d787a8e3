package podunavailablebudget

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// pauses keeps the pauses of requests, and their names.
type pauses struct {
	watches.Queue

	all   []time.Duration
	names []string
}

func (p *pauses) AddAfter(request ctrl.Request, pause time.Duration) {
	p.all, p.names = append(p.all, pause), append(p.names, request.Name)
}

type mapped struct {
	*apiserver.Server

	mapper meta.RESTMapper
}

func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

// TestAffected: an event wakes the budgets of its pod or of its workload, and no others of the namespace.
func TestAffected(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), policyv1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, noon)
	mapping := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	r, err := New(mapped{server, mapping}, Options{Live: server, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Deployment", "ReplicaSet"} {
		gvk := appsv1.SchemeGroupVersion.WithKind(kind)
		mapping.Add(gvk, meta.RESTScopeNamespace)
		r.workloads.Watch(gvk.GroupKind(), gvk)
	}
	set := &metav1.PartialObjectMetadata{}
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	set.Namespace, set.Name, set.UID = "shop", "web-1", "web-1"
	set.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web", Controller: ptr.To(true),
	}}
	budgets := []*podUnavailableBudget{newSnapshot("by-label").object}
	for name, kind := range map[string]string{
		"web": "Deployment", "db": "Deployment", "web-1": "ReplicaSet", "odd": "Game",
	} {
		b := &podUnavailableBudget{}
		b.Namespace, b.Name, b.UID = "shop", name, types.UID("uid-"+name)
		b.Spec.TargetReference = &policyv1beta1.TargetReference{APIVersion: "apps/v1", Kind: kind, Name: name}
		budgets = append(budgets, b)
	}
	for _, b := range budgets {
		if err := server.Put(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Put(&appsv1.ReplicaSet{ObjectMeta: set.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	pod := newPod("p", controlledBy("web-1"))
	for name, c := range map[string]struct {
		events  handler.EventHandler
		was, is client.Object
		want    string
	}{
		"a pod": {
			events: r.podEvents(), was: pod, is: newPod("p", controlledBy("web-1"), unready),
			want: "by-label odd web web-1",
		},
		"a pod of nothing": {
			events: r.podEvents(), was: newPod("p"), is: newPod("p", unready), want: "by-label odd",
		},
		"a pod that a budget has stamped": {
			events: r.podEvents(), was: newPod("p", stampedWith("db")), is: newPod("p", stampedWith("db"), unready),
			want: "by-label db odd",
		},
		"nothing that matters": {events: r.podEvents(), was: pod, is: pod},
		"a ReplicaSet":         {events: r.workloadEvents(), was: set, is: set, want: "by-label odd web web-1"},
	} {
		t.Run(name, func(t *testing.T) {
			var q pauses
			c.events.Update(t.Context(), event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}, &q)
			slices.Sort(q.names)
			if got := strings.Join(q.names, " "); got != c.want {
				t.Errorf("budgets %q, want %q", got, c.want)
			}
		})
	}
}

// TestManyBudgets: the budgets of one namespace leave most of the time to those of others, however many guard a pod.
func TestManyBudgets(t *testing.T) {
	const pass = 30 * time.Millisecond // of a budget that guards 10,000 pods
	for budgets, want := range map[int]time.Duration{1: gather, 5: 2 * gather, 1001: 251 * gather} {
		var q pauses
		later(&q, make([]ctrl.Request, budgets))
		if len(q.all) != budgets || q.all[0] != want || time.Duration(budgets)*pass > want*3/4 {
			t.Errorf("%d of %d budgets wait %v, want %s", len(q.all), budgets, q.all[0], want)
		}
	}
}
