package workloadspread

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// cluster is an API server with a mapper and scales.
type cluster struct {
	*testing.T
	*apiserver.Server
	// meanwhile runs before the next write of a status.
	meanwhile func()
	fault     error
	// selector of scales.
	selector string
}

func (c *cluster) Context() context.Context { return c.T.Context() }

func (*cluster) RESTMapper() meta.RESTMapper {
	games := schema.GroupVersion{Group: "example.com", Version: "v1"}
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, appsv1beta1.GroupVersion, games,
	})
	for _, gvk := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		batchv1.SchemeGroupVersion.WithKind("Job"), appsv1beta1.GroupVersion.WithKind("CloneSet"),
		games.WithKind("Game"), games.WithKind("Round"),
	} {
		m.Add(gvk, meta.RESTScopeNamespace)
	}
	return m
}

// Status writes, after what happens meanwhile.
func (c *cluster) Status() client.SubResourceWriter { return status{c.Server.Status(), c} }

type status struct {
	client.SubResourceWriter
	c *cluster
}

func (s status) Patch(
	ctx context.Context, o client.Object, p client.Patch, options ...client.SubResourcePatchOption,
) error {
	if do := s.c.meanwhile; do != nil {
		s.c.meanwhile = nil
		do()
	}
	if s.c.fault != nil {
		return s.c.fault
	}
	return s.SubResourceWriter.Patch(ctx, o, p, options...)
}

// SubResource has scales.
func (c *cluster) SubResource(name string) client.SubResourceClient {
	return scales{c.Server.SubResource(name), c.selector}
}

type scales struct {
	client.SubResourceClient

	selector string
}

// Get reads a scale of four replicas.
func (s scales) Get(_ context.Context, _, into client.Object, _ ...client.SubResourceGetOption) error {
	scale, is := into.(*unstructured.Unstructured)
	if !is {
		return fmt.Errorf("scale is a %T", into)
	}
	return errors.Join(
		unstructured.SetNestedField(scale.Object, int64(4), "spec", "replicas"),
		unstructured.SetNestedField(scale.Object, s.selector, "status", "selector"),
	)
}

func newCluster(t *testing.T) (*cluster, *Reconciler) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, appsv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{T: t, Server: apiserver.New(scheme, noon)}
	if err := errors.Join(owned.Index(t.Context(), c.Server, &corev1.Pod{}),
		indexMatches(t.Context(), c.Server)); err != nil {
		t.Fatal(err)
	}
	r, err := New(c, Options{Now: noon, Recorder: c.Server})
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func (c *cluster) put(all ...client.Object) {
	c.Helper()
	for _, o := range all {
		if err := c.Put(o); err != nil {
			c.Fatal(err)
		}
	}
	c.Requests()
}

// show has the events of WorkloadSpreads reach a reconciler.
func (c *cluster) show(r *Reconciler) {
	c.Helper()
	for _, ws := range r.index.All("shop") {
		r.index.Delete(client.ObjectKeyFromObject(ws))
	}
	all, err := stored.List(c.Context(), c.Server, workloadspread.Kind())
	if err != nil {
		c.Fatal(err)
	}
	for _, raw := range all {
		if err := r.index.Put(raw); err != nil {
			c.Fatal(err)
		}
	}
}

// reconcile runs a pass, and returns the writes.
func (c *cluster) reconcile(r *Reconciler) []string {
	c.Helper()
	c.show(r)
	if _, err := r.Reconcile(c.Context(), ctrl.Request{NamespacedName: types.NamespacedName{
		Namespace: "shop", Name: "spread",
	}}); err != nil {
		c.Fatal(err)
	}
	var writes []string
	for _, request := range c.Requests() {
		if !strings.HasPrefix(request, "GET") {
			writes = append(writes, request)
		}
	}
	return writes
}

func (c *cluster) spread() *subset.Spread {
	c.Helper()
	ws := &subset.Spread{}
	if err := c.Get(c.Context(), types.NamespacedName{Namespace: "shop", Name: "spread"}, ws); err != nil {
		c.Fatal(err)
	}
	return ws
}

func cloneSet() *appsv1beta1.CloneSet {
	return &appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid-web", Generation: 1,
	}}
}

func spreadPod(name, in string) *corev1.Pod {
	pod := podOf(name, noon().Add(-time.Hour))
	run(pod, in, noon())
	pod.Annotations = map[string]string{
		kruise.MatchedWorkloadSpreadKey: subset.Text(subset.Match{Name: "spread", Subset: in}),
	}
	return pod
}

// TestReconcile: a pass writes what differs, and the next one nothing.
func TestReconcile(t *testing.T) {
	c, r := newCluster(t)
	c.put(spreadOf(1, -1), cloneSet(), spreadPod("p1", "a"), spreadPod("p2", "a"), spreadPod("p3", "b"))
	if got := len(c.reconcile(r)); got != 4 {
		t.Errorf("%d writes, want one of the status and three of pods", got)
	}
	if e := c.spread().Status.SubsetStatuses; e[0].Replicas != 2 || e[1].Replicas != 1 || e[1].MissingReplicas != -1 {
		t.Errorf("%+v", e)
	}
	if got := c.reconcile(r); len(got) > 0 {
		t.Errorf("the second pass writes %v", got)
	}
	if err := c.Delete(t.Context(), c.spread()); err != nil {
		t.Fatal(err)
	}
	c.Requests()
	if got := len(c.reconcile(r)); got != 3 {
		t.Errorf("%d writes after the deletion, want one of each pod", got)
	}
	var list corev1.PodList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if len(list.Items[i].Annotations) > 0 {
			t.Errorf("%s keeps %v", list.Items[i].Name, list.Items[i].Annotations)
		}
	}
}

// TestConflict: a record that admission writes during a pass is not lost.
func TestConflict(t *testing.T) {
	c, r := newCluster(t)
	c.put(spreadOf(3), cloneSet(), spreadPod("p1", "a"))
	c.meanwhile = func() {
		ws := c.spread()
		ws.Status.VersionedSubsetStatuses = map[string][]subset.Entry{appsv1beta1.WorkloadSpreadVersionIgnored: {
			{Name: "a", MissingReplicas: 1, CreatingPods: map[string]metav1.Time{"p2": metav1.NewTime(noon())}},
		}}
		if err := c.Put(ws); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"PATCH pods/p1 200", "PATCH workloadspreads/spread/status 409"},
		c.reconcile(r)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	c.show(r)
	if _, err := r.Reconcile(t.Context(), ctrl.Request{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "spread"},
	}); err != nil {
		t.Fatal(err)
	}
	e := c.spread().Status.VersionedSubsetStatuses[appsv1beta1.WorkloadSpreadVersionIgnored][0]
	if e.Replicas != 1 || e.MissingReplicas != 1 || len(e.CreatingPods) != 1 {
		t.Errorf("%+v", e)
	}
}

// TestStuck: a pod that finds no node is deleted after the status says so.
func TestStuck(t *testing.T) {
	c, r := newCluster(t)
	pod := spreadPod("p1", "a")
	pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
	pod.Annotations[corev1.PodDeletionCost] = "200"
	c.put(adaptive(spreadOf(1, -1)), cloneSet(), pod)
	if diff := cmp.Diff([]string{"PATCH workloadspreads/spread/status 200", "DELETE pods/p1 200"},
		c.reconcile(r)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestDeployment: pods of all ReplicaSets count, each version for itself, and the newest version keeps the first
// subset.
func TestDeployment(t *testing.T) {
	c, r := newCluster(t)
	ws := spreadOf(1, -1)
	ws.Spec.TargetReference = &appsv1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	c.put(ws, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid-web", Generation: 1,
	}})
	for revision, version := range map[string]string{"1": "v1", "2": "v2"} {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace:   "shop",
			Name:        "web-" + version,
			UID:         types.UID("uid-" + version),
			Annotations: map[string]string{"deployment.kubernetes.io/revision": revision},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web", Controller: ptr.To(true),
			}},
		}}
		pod := spreadPod("p-"+version, "a")
		pod.Labels = map[string]string{"pod-template-hash": version}
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: ptr.To(true),
		}}
		c.put(set, pod)
	}
	c.reconcile(r)
	if got := c.spread().Status.VersionedSubsetStatuses; len(got) != 2 || got["v1"][0].MissingReplicas != 0 ||
		got["v2"][0].Replicas != 1 {
		t.Errorf("%+v", got)
	}
	for pod, cost := range map[string]string{"p-v1": "100", "p-v2": "200"} {
		is := &corev1.Pod{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: pod}, is); err != nil ||
			is.Annotations[corev1.PodDeletionCost] != cost {
			t.Errorf("%s: %v, %v", pod, is.Annotations, err)
		}
	}
}

// TestJob: events report what changes a Job, so that a pass asks for no other.
func TestJob(t *testing.T) {
	c, r := newCluster(t)
	ws := spreadOf(1, -1)
	ws.Spec.TargetReference = &appsv1beta1.TargetReference{APIVersion: "batch/v1", Kind: "Job", Name: "web"}
	pod := spreadPod("p1", "a")
	pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = "batch/v1", "Job"
	c.put(ws, pod, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid-web", Generation: 1,
	}})
	for range 2 {
		c.show(r)
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{
			Namespace: "shop", Name: "spread",
		}})
		if err != nil || result != (ctrl.Result{}) {
			t.Errorf("%+v, %v", result, err)
		}
	}
	if got := c.spread().Status.SubsetStatuses; len(got) != 2 || got[0].Replicas != 1 {
		t.Errorf("%+v", got)
	}
}

// TestBadSpec: what cannot be read is reported once, and stops nothing.
func TestBadSpec(t *testing.T) {
	c, r := newCluster(t)
	ws := spreadOf(1, -1)
	ws.Spec.Subsets[1].Name = "a"
	c.put(ws, cloneSet(), spreadPod("p1", "a"))
	for range 3 {
		c.reconcile(r)
	}
	if got := c.Events(ws, noteInvalid); len(got) != 1 ||
		!strings.Contains(got[0].Message, "spec.subsets[1].name: Duplicate value") {
		t.Errorf("%v", got)
	}
}
