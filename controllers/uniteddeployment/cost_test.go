package uniteddeployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
)

// counting is a client that counts the pods that it returns.
func (m *model) counting(pods *int) client.Client {
	return interceptor.NewClient(m.Server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			err := c.List(ctx, list, o...)
			if l, is := list.(*corev1.PodList); is {
				*pods += len(l.Items)
			}
			return err
		},
	})
}

// fill gives each workload of an object the pods that it asks for, ready and not reserved, and its status.
func (m *model) fill(u *v1beta1.UnitedDeployment) {
	m.Helper()
	for _, c := range m.children(u) {
		for n := range c.Replicas {
			m.store(readyPod(m, c, n))
		}
		m.count(c)
	}
}

func readyPod(m *model, c *subsets.Child, n int32) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:       "shop",
		Name:            fmt.Sprintf("%s-%d", c.Object.GetName(), n),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c.Object, c.Kind)},
		Labels: map[string]string{
			kruise.SubSetNameLabelKey:             c.Subset,
			kruise.ControllerRevisionHashLabelKey: c.Revision,
			kruise.UnitedDeploymentReservedPodKey: "false",
		},
	}}
	pod.Spec.NodeName, pod.Status.Phase = c.Subset, corev1.PodRunning
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	setCondition(pod, corev1.PodReady, corev1.ConditionTrue, "", m.Clock)
	return pod
}

// A pass over 10 subsets and 5,000 ready pods writes nothing, reads no pod, and allocates no more than one over 10
// pods, with any schedule strategy but reservation. One pod that is not ready makes the pass read the pods of its
// subset, and no others.
func TestIdlePass(t *testing.T) {
	strategies := map[string]change{
		"Fixed":    func(*v1beta1.UnitedDeployment) {},
		"Adaptive": adaptive(30, 300, false),
	}
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			allocations := map[int32]float64{}
			for _, replicas := range []int32{10, 5000} {
				m, pods := newModel(t), 0
				u := m.create("web", replicas, "a<10%,b<10%,c<10%,d<10%,e<10%,f<10%,g<10%,h<10%,i<10%,j", strategy)
				m.restart(m.counting(&pods))
				m.Reconcile()
				m.fill(u)
				for range 3 {
					m.Reconcile()
				}
				m.Look(u)
				if u.Status.ReadyReplicas != replicas || u.Status.Replicas != replicas {
					t.Fatalf("status %+v", u.Status)
				}
				m.Server.Requests()
				pods = 0
				allocations[replicas] = testing.AllocsPerRun(5, m.Reconcile)
				if requests := m.Server.Requests(); len(requests) > 0 || pods > 0 {
					t.Errorf("idle passes over %d pods read %d pods, and ask %q", replicas, pods, requests)
				}
				if replicas > 10 {
					m.spoil(u, "c")
					m.Reconcile()
					if want := map[string]int{"Adaptive": 500}[name]; pods != want {
						t.Errorf("a pass with one pod that is not ready reads %d pods", pods)
					}
				}
			}
			t.Logf("allocations of a pass: %.0f with 10 pods, %.0f with 5,000", allocations[10], allocations[5000])
			if few, many := allocations[10], allocations[5000]; many > few*1.05 {
				t.Errorf("a pass allocates %.0f times with 10 pods, and %.0f times with 5,000", few, many)
			}
		})
	}
}

// spoil makes one pod of a subset not ready.
func (m *model) spoil(u *v1beta1.UnitedDeployment, subset string) {
	m.Helper()
	c := m.child(u, subset)
	pod := m.pods(c.Owns)[0]
	setCondition(pod, corev1.PodReady, corev1.ConditionFalse, "", m.Clock)
	m.put(pod)
	m.count(c)
}

// A release to 10 subsets costs a revision, a write of each workload and the status.
func TestReleaseCosts(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 20, "a,b,c,d,e,f,g,h,i,j")
	m.Reconcile()
	m.fill(u)
	m.Reconcile()
	m.Reconcile()
	m.change(u, image("web:2"))
	m.Server.Requests()
	m.Reconcile()
	counts := map[string]int{}
	for _, request := range m.Server.Requests() {
		verb, what, _ := strings.Cut(request, " ")
		what, _, _ = strings.Cut(what, "/")
		counts[verb+" "+what]++
	}
	if counts["PATCH clonesets"] != 10 || counts["POST controllerrevisions"] != 1 || len(counts) != 3 {
		t.Errorf("a release costs %v", counts)
	}
	m.Reconcile()
	for _, request := range m.Server.Requests() {
		if strings.HasPrefix(request, "PATCH clonesets") {
			t.Errorf("the next pass repeats %s", request)
		}
	}
}
