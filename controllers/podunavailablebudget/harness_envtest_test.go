//go:build envtest

package podunavailablebudget_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podunavailablebudget"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

type budget = policyv1beta1.PodUnavailableBudget

type bench struct{ *podbench.Bench }

// newBench has no reconciler yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	crds := "../../config/crd/bases/"
	return &bench{podbench.New(t, cluster.Options{
		Scheme: podbench.Scheme(t, policyv1beta1.AddToScheme),
		CRDDirs: []string{
			crds + "policy.kruise.io_podunavailablebudgets.yaml", crds + "apps.kruise.io_clonesets.yaml",
			crds + "apps.kruise.io_sidecarsets.yaml",
		},
	})}
}

// plain is the client of a reconciler as it is.
func plain(c client.WithWatch) client.Client { return c }

// start has a reconciler.
func start(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.reconcile(podunavailablebudget.Options{}, plain)
	return b
}

// reconcile starts a reconciler and gives what stops it.
func (b *bench) reconcile(o podunavailablebudget.Options, wrap func(client.WithWatch) client.Client) (stop func()) {
	b.Helper()
	return b.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := podunavailablebudget.New(wrap(c), o)
		if err != nil {
			return err
		}
		return r.SetupWithManager(b.Context(), mgr, controller.Options{MaxConcurrentReconciles: 3})
	})
}

func (b *bench) create(o client.Object) {
	b.Helper()
	o.SetNamespace(b.Namespace)
	if err := b.Client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// budget creates one of pods with the label app=web.
func (b *bench) budget(name, maxUnavailable string, change ...func(*budget)) *budget {
	b.Helper()
	of := &budget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	of.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	of.Spec.MaxUnavailable = ptr.To(intstr.Parse(maxUnavailable))
	for _, c := range change {
		c(of)
	}
	b.create(of)
	return of
}

// target has a budget guard a workload.
func target(apiVersion, kind, name string) func(*budget) {
	return func(of *budget) {
		of.Spec.Selector = nil
		of.Spec.TargetReference = &policyv1beta1.TargetReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
}

// owner is a reference to a controller.
func owner(of client.Object, apiVersion, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: of.GetName(), UID: of.GetUID(), Controller: ptr.To(true),
	}}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
	}
}

// deployment creates one with a ReplicaSet, which it returns.
func (b *bench) deployment(name string, replicas int32) (*appsv1.Deployment, *appsv1.ReplicaSet) {
	b.Helper()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template()},
	}
	b.create(d)
	return d, b.replicaSet(d, name+"-1")
}

func (b *bench) replicaSet(d *appsv1.Deployment, name string) *appsv1.ReplicaSet {
	b.Helper()
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner(d, "apps/v1", "Deployment")},
		Spec:       appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: template()},
	}
	b.create(rs)
	return rs
}

// cloneSet creates one.
func (b *bench) cloneSet(name string, replicas int32) *v1beta1.CloneSet {
	b.Helper()
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Replicas, set.Spec.Template = &replicas, template()
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.create(set)
	return set
}

// pods creates available pods with the label app=web.
func (b *bench) pods(n int, owners []metav1.OwnerReference, prefix string) []*corev1.Pod {
	b.Helper()
	all := make([]*corev1.Pod, n)
	for i := range all {
		all[i] = b.Pod(fmt.Sprint(prefix, "-", i), func(pod *corev1.Pod) {
			pod.Labels, pod.OwnerReferences = map[string]string{"app": "web"}, owners
		})
		b.ready(all[i], corev1.ConditionTrue)
	}
	return all
}

func (b *bench) ready(pod *corev1.Pod, status corev1.ConditionStatus) {
	b.Helper()
	b.Status(pod, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	})
}

// status waits for current, desired, allowed and total.
func (b *bench) status(of *budget, current, desired, allowed, total int32) {
	b.Helper()
	want := [4]int32{current, desired, allowed, total}
	b.Until(func() error {
		if err := b.Look(of); err != nil {
			return err
		}
		s := of.Status
		if got := [4]int32{
			s.CurrentAvailable, s.DesiredAvailable, s.UnavailableAllowed, s.TotalReplicas,
		}; got != want || s.ObservedGeneration != of.Generation {
			return fmt.Errorf("current, desired, allowed, total of %s are %v in generation %d, want %v",
				of.Name, got, s.ObservedGeneration, want)
		}
		return nil
	})
}

// stamped waits until pods name a budget in both annotations.
func (b *bench) stamped(name string, pods ...*corev1.Pod) {
	b.Helper()
	for _, pod := range pods {
		b.Until(func() error {
			if err := b.Look(pod); err != nil {
				return err
			}
			if pub.Stamp(pod) != name || pod.Annotations["kruise.io/related-pub"] != name {
				return fmt.Errorf("pod %s has the annotations %v, want %s", pod.Name, pod.Annotations, name)
			}
			return nil
		})
	}
}

// count counts the requests that begin with a text.
func count(requests []string, prefix string) int {
	n := 0
	for _, r := range requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}
