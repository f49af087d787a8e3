package workloadspread_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// TestOwnWithoutSelector: a WorkloadSpread whose filter has no selector counts the pods of its target that no other one
// admits.
func TestOwnWithoutSelector(t *testing.T) {
	c := newCluster(t)
	_, x := c.replica(workloadspread.Options{})
	c.put(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: shop, Name: "web-1", UID: "uid-web-1",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web", Controller: ptr.To(true),
		}},
	}})
	near, far := spread("near", "ReplicaSet", -1), spread("far", "Deployment", -1)
	near.Spec.TargetReference.Name = "web-1"
	near.Spec.TargetFilter = &appsv1beta1.TargetFilter{ReplicasPathList: []string{"spec.replicas"}}
	for _, ws := range []*subset.Spread{near, far} {
		c.put(ws)
		c.show(x, ws.Name)
	}
	finder := &replicas.Finder{Cached: c.Server, Live: c, Scales: c, Mapper: mapper(), Now: time.Now}
	targets := &workloadspread.Targets{Finder: finder, Live: c}
	bare, spread := pod("bare", "apps/v1", "ReplicaSet", "web-1"), pod("spread", "apps/v1", "ReplicaSet", "web-1")
	spread.Annotations = map[string]string{"apps.kruise.io/matched-workloadspread": `{"name":"far","subset":"a"}`}
	for ws, want := range map[*subset.Spread]int{near: 0, far: 2} {
		own, err := targets.Own(t.Context(), x, ws, []*corev1.Pod{bare, spread})
		if err != nil || len(own) != want {
			t.Errorf("%s has %d pods, %v", ws.Name, len(own), err)
		}
	}
}

// TestOwn: each pod of a Deployment belongs to the WorkloadSpread that admission finds, and nothing is read live.
func TestOwn(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := newCluster(t)
		d, x := c.replica(workloadspread.Options{})
		c.put(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: shop, Name: "web-1", UID: "uid-web-1",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web", Controller: ptr.To(true),
			}},
		}})
		var all []*subset.Spread
		for i := range 1 + random.IntN(5) {
			ws := spread(fmt.Sprint("ws-", i), "Deployment", -1)
			if random.IntN(2) == 0 {
				ws.Spec.TargetReference.Kind, ws.Spec.TargetReference.Name = "ReplicaSet", "web-1"
			}
			if random.IntN(2) == 0 {
				ws.Spec.TargetFilter = &appsv1beta1.TargetFilter{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
					"role": fmt.Sprint(random.IntN(2)),
				}}}
			}
			c.put(ws)
			c.show(x, ws.Name)
			all = append(all, ws)
		}
		finder := &replicas.Finder{Cached: c.Server, Live: c, Scales: c, Mapper: mapper(), Now: time.Now}
		targets := &workloadspread.Targets{Finder: finder, Live: c}
		for i := range 2 {
			p := pod("p", "apps/v1", "ReplicaSet", "web-1")
			p.Labels["role"] = fmt.Sprint(i)
			admitted, _ := subset.MatchOf(orEmpty(c.admit(d, p, "uid")))
			reads := c.reads.Load()
			for _, ws := range all {
				if !subset.Selects(ws, p.Labels) {
					continue
				}
				own, err := targets.Own(t.Context(), x, ws, []*corev1.Pod{p})
				if err != nil || (len(own) == 1) != (admitted.Name == ws.Name) {
					t.Errorf("seed %d: admission gives the pod to %q, and %s has %d pods, %v",
						seed, admitted.Name, ws.Name, len(own), err)
				}
			}
			if n := c.reads.Load() - reads; n > 0 {
				t.Errorf("seed %d: %d live reads", seed, n)
			}
		}
	}
}

func orEmpty(p *corev1.Pod) *corev1.Pod {
	if p == nil {
		return &corev1.Pod{}
	}
	return p
}
