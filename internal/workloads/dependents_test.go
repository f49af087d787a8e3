package workloads_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/write"
)

// cache has what it was given, and counts what is read from it. All else panics.
type cache struct {
	client.Client

	pods   []corev1.Pod
	claims []corev1.PersistentVolumeClaim
	jobs   []metav1.PartialObjectMetadata
	reads  []string
	failed error
}

func (c *cache) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *corev1.PodList:
		list.Items = append([]corev1.Pod(nil), c.pods...)
		c.reads = append(c.reads, "pods")
	case *corev1.PersistentVolumeClaimList:
		list.Items = append([]corev1.PersistentVolumeClaim(nil), c.claims...)
		c.reads = append(c.reads, "claims")
	case *appsv1.ControllerRevisionList:
		list.Items = []appsv1.ControllerRevision{
			{ObjectMeta: meta("web-2", owner), Revision: 2}, {ObjectMeta: meta("web-1", owner), Revision: 1}, {
				ObjectMeta: meta("db-1", "db"), Revision: 1,
			},
		}
		c.reads = append(c.reads, "revisions")
	case *metav1.PartialObjectMetadataList:
		list.Items = append([]metav1.PartialObjectMetadata(nil), c.jobs...)
		c.reads = append(c.reads, list.Kind)
	}
	return c.failed
}

func (c *cache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.reads = append(c.reads, "node "+key.Name)
	if key.Name == "gone" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
	}
	into.SetLabels(map[string]string{"zone": "a"})
	return c.failed
}

const owner = types.UID("set")

func meta(name string, owner types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:       "shop",
		Name:            name,
		UID:             types.UID("uid-" + name),
		ResourceVersion: "1",
		Labels:          map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}},
	}
}

func set() client.Object {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: owner}}
}

func web() labels.Selector { return labels.SelectorFromSet(labels.Set{"app": "web"}) }

func pod(name string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: meta(name, owner)}
	if change != nil {
		change(&p)
	}
	return p
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

// started returns dependents over a cache and an API server.
func started(t *testing.T, c, live *cache, o workloads.DependentOptions) *workloads.Dependents {
	t.Helper()
	api, err := binding.New("test", c, binding.Options{
		Live: live, Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return workloads.NewDependents(api, o)
}

func names[T client.Object](objects []T) string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetName())
	}
	return strings.Join(all, " ")
}

func TestObserve(t *testing.T) {
	c := &cache{
		pods: []corev1.Pod{
			pod("c", nil), pod("a", nil), pod("left", func(p *corev1.Pod) { p.Labels = nil }), pod("gone", terminating),
			pod("done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			{ObjectMeta: meta("foreign", "db")},
		},
		claims: []corev1.PersistentVolumeClaim{
			{ObjectMeta: meta("data-b", owner)}, {ObjectMeta: meta("data-a", owner)}, {ObjectMeta: meta("data-x", "db")},
		},
		jobs: []metav1.PartialObjectMetadata{{ObjectMeta: meta("pull", owner)}},
	}
	c.claims = append(c.claims, corev1.PersistentVolumeClaim{ObjectMeta: meta("data-gone", owner)})
	c.claims[3].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	d := started(t, c, &cache{}, workloads.DependentOptions{Claims: true, PullJobs: true})
	o, err := d.Observe(t.Context(), set(), web())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"active": names(o.Active), "inactive": names(o.Inactive), "unselected": names(o.Unselected),
		"all":    names(o.AllPods()),
		"claims": names(o.Claims), "revisions": names(o.Revisions), "jobs": names(o.Jobs),
		"reads": strings.Join(c.reads, " "),
	}
	want := map[string]string{
		"active": "a c", "inactive": "gone done", "unselected": "left", "all": "a c gone done left",
		"claims": "data-a data-b", "revisions": "web-1 web-2", "jobs": "pull",
		"reads": "pods claims revisions ImagePullJobList",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	plain := &cache{}
	bare := started(t, plain, &cache{}, workloads.DependentOptions{})
	if _, err := bare.Observe(t.Context(), set(), web()); err != nil ||
		strings.Join(plain.reads, " ") != "pods revisions" {
		t.Errorf("a workload without claims and jobs reads %v, %v", plain.reads, err)
	}
	c.failed = errors.New("no cache")
	if _, err := d.Observe(t.Context(), set(), web()); !errors.Is(err, c.failed) {
		t.Errorf("error %v", err)
	}
}

// record has the ledgers of d record an answer.
func record(d *workloads.Dependents, key types.NamespacedName, w *write.Write, answer write.Object, err error) {
	for _, l := range d.Ledgers() {
		l.Record(key, w, answer, err)
	}
}

// Writes are observed as they were answered, while the cache lags, and are dropped with the workload.
func TestRecord(t *testing.T) {
	c := &cache{
		pods:   []corev1.Pod{pod("a", nil), pod("b", nil)},
		claims: []corev1.PersistentVolumeClaim{{ObjectMeta: meta("data-a", owner)}},
	}
	d := started(t, c, &cache{}, workloads.DependentOptions{Claims: true})
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	patched, created := pod("a", func(p *corev1.Pod) { p.ResourceVersion, p.Labels["new"] = "2", "yes" }), pod("c",
		func(p *corev1.Pod) { p.ResourceVersion = "3" })
	refused := errors.New("refused")
	record(d, key, &write.Write{Verb: write.Patch, Object: &c.pods[0]}, &patched, nil)
	record(d, key, &write.Write{Verb: write.Create, Object: &created}, &created, nil)
	record(d, key, &write.Write{Verb: write.Delete, Object: &c.pods[1]}, nil, nil)
	record(d, key, &write.Write{Verb: write.Delete, Object: &c.claims[0]}, nil, refused)
	record(d, key, &write.Write{Verb: write.Delete, Object: &corev1.Node{}}, nil, nil)
	o, err := d.Observe(t.Context(), set(), web())
	if err != nil || names(o.Active) != "a c" || o.Active[0].Labels["new"] != "yes" || names(o.Claims) != "data-a" {
		t.Errorf("pods %q, claims %q, %v", names(o.Active), names(o.Claims), err)
	}
	if o.RecheckAfter == 0 {
		t.Error("the cache lacks a pod, and nothing asks for another look")
	}
	d.Forget(key)
	if o, err := d.Observe(t.Context(), set(), web()); err != nil || names(o.Active) != "a b" {
		t.Errorf("after Forget: pods %q, %v", names(o.Active), err)
	}
}

// A pod that an earlier process created is returned once, and belongs to the observations from then on.
func TestMissing(t *testing.T) {
	live := &cache{pods: []corev1.Pod{pod("a", nil), pod("b", nil), {ObjectMeta: meta("foreign", "db")}}}
	d := started(t, &cache{pods: []corev1.Pod{pod("a", nil)}}, live, workloads.DependentOptions{})
	o, err := d.Observe(t.Context(), set(), web())
	if err != nil {
		t.Fatal(err)
	}
	missing, err := d.Missing(t.Context(), set(), web(), o.Pods)
	if err != nil || names(missing) != "b" || strings.Join(live.reads, " ") != "pods" {
		t.Errorf("missing %q after reads %v, %v", names(missing), live.reads, err)
	}
	if o, err := d.Observe(t.Context(), set(), web()); err != nil || names(o.Active) != "a b" {
		t.Errorf("pods %q, %v", names(o.Active), err)
	}
	live.failed = errors.New("no answer")
	if _, err := d.Missing(t.Context(), set(), web(), o.Pods); !errors.Is(err, live.failed) {
		t.Errorf("error %v", err)
	}
}

func TestNodeLabels(t *testing.T) {
	on := func(node string) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}} }
	c := &cache{}
	d := started(t, c, &cache{}, workloads.DependentOptions{})
	got, err := d.NodeLabels(t.Context(), []*corev1.Pod{on("n1"), on("n1"), on(""), on("gone")})
	want := map[string]map[string]string{"n1": {"zone": "a"}, "gone": nil}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || strings.Join(c.reads, ", ") != "node n1, node gone" {
		t.Errorf("%v, reads %v (-want +got):\n%s", err, c.reads, diff)
	}
	c.failed = errors.New("no cache")
	if _, err := d.NodeLabels(t.Context(), []*corev1.Pod{on("n2")}); !errors.Is(err, c.failed) {
		t.Errorf("error %v", err)
	}
}
