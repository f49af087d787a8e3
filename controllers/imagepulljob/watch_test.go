package imagepulljob

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/test/rig/storedtest"
	"github.com/kruisekit/kruisekit/test/rig/watchestest"
)

// indexed holds jobs as the cache does, by the reconciler's own index.
type indexed struct {
	client.Reader
	jobs map[string][]unstructured.Unstructured
}

func (x indexed) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	into, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return fmt.Errorf("a list of %T", list)
	}
	for _, o := range options {
		if fields, is := o.(client.MatchingFields); is {
			into.Items = x.jobs[fields[jobField]]
		}
	}
	return nil
}

// watching is a reconciler that has some jobs.
func watching(t testing.TB, jobs ...*v1beta1.ImagePullJob) *Reconciler {
	t.Helper()
	r := &Reconciler{
		options: Options{}.withDefaults(), api: &binding.Binding{}, rules: watches.NewRules(imagepull.NewRule),
	}
	x := indexed{jobs: map[string][]unstructured.Unstructured{}}
	for _, job := range jobs {
		raw := storedtest.Raw(t, gvk(), job)
		for _, key := range r.keysOf(raw) {
			x.jobs[key] = append(x.jobs[key], *raw)
		}
	}
	r.api.Cached = x
	return r
}

func jobNamed(name, image string) *v1beta1.ImagePullJob {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	job.Spec.Image = image
	return job
}

// woken gives the jobs that are in a queue, by name.
func woken(t *testing.T, happen func(queue)) []string {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	happen(q)
	var names []string
	for q.Len() > 0 {
		request, _ := q.Get()
		names = append(names, request.Name)
		q.Done(request)
	}
	slices.Sort(names)
	return names
}

// Two hundred jobs for a hundred repositories have their tags on each of a hundred nodes. When a tag's pull ends on all
// of them, one job is woken a node; when a node's labels change, none.
func TestWakesInProportion(t *testing.T) {
	var jobs []*v1beta1.ImagePullJob
	before := &v1beta1.NodeImage{}
	before.Spec.Images = map[string]v1beta1.ImageSpec{}
	before.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
	for i := range 200 {
		name, tag := fmt.Sprintf("app-%d", i/2), fmt.Sprint(i%2)
		job := jobNamed(fmt.Sprintf("job-%03d", i), name+":"+tag)
		jobs = append(jobs, job)
		image, status := before.Spec.Images[name], before.Status.ImageStatuses[name]
		image.Tags = append(image.Tags, v1beta1.ImageTagSpec{
			Tag: tag, OwnerReferences: []corev1.ObjectReference{{Namespace: "shop", Name: job.Name, UID: job.UID}},
		})
		status.Tags = append(status.Tags, v1beta1.ImageTagStatus{Tag: tag, Phase: v1beta1.ImagePhasePulling})
		before.Spec.Images[name], before.Status.ImageStatuses[name] = image, status
	}
	handler := watching(t, jobs...).nodeEvents()
	after := before.DeepCopy()
	after.Status.ImageStatuses["app-7"].Tags[0].Phase = v1beta1.ImagePhaseSucceeded
	labelled := before.DeepCopy()
	labelled.Labels = map[string]string{"zone": "b"}
	was, is, other := rawNode(t, before), rawNode(t, after), rawNode(t, labelled)
	wakes := func(name string, now *unstructured.Unstructured) []string {
		return woken(t, func(q queue) {
			handler.Update(t.Context(),
				event.UpdateEvent{ObjectOld: called(was, name, "1"), ObjectNew: called(now, name, "2")}, q)
		})
	}
	for i := range 100 {
		name := fmt.Sprintf("node-%03d", i)
		if got := wakes(name, is); !slices.Equal(got, []string{"job-014"}) {
			t.Fatalf("%s has pulled app-7:0, which wakes %q", name, got)
		}
	}
	if got := wakes("node-007", other); len(got) > 0 {
		t.Fatalf("a node has another label, which wakes %q", got)
	}
}

func rawNode(t testing.TB, node *v1beta1.NodeImage) *unstructured.Unstructured {
	t.Helper()
	return storedtest.Raw(t, nodeGVK(), node)
}

// called is the same for another node, in some version.
func called(node *unstructured.Unstructured, name, version string) *unstructured.Unstructured {
	labels := node.GetLabels()
	node = &unstructured.Unstructured{Object: maps.Clone(node.Object)}
	node.Object["metadata"] = map[string]any{}
	node.SetName(name)
	node.SetResourceVersion(version)
	node.SetLabels(labels)
	return node
}

func TestPodEvents(t *testing.T) {
	web := jobNamed("web", "nginx")
	web.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
	elsewhere := web.DeepCopy()
	elsewhere.Namespace, elsewhere.Name = "office", "elsewhere"
	ended := web.DeepCopy()
	ended.Name, ended.Status.CompletionTime = "ended", &metav1.Time{Time: time.Unix(1, 0)}
	handler := watching(t, web, elsewhere, ended, jobNamed("all", "nginx")).podEvents()
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: "n"},
		}
		change(p)
		return p
	}
	same := func(*corev1.Pod) {}
	unbound := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	done := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	other := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} }
	cases := map[string]struct {
		before, after *corev1.Pod
		want          string
	}{
		"comes":              {nil, pod(same), "web"},
		"comes, unbound":     {nil, pod(unbound), ""},
		"comes, of others":   {nil, pod(other), ""},
		"is bound":           {pod(unbound), pod(same), "web"},
		"runs":               {pod(same), pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), ""},
		"ends":               {pod(same), pod(done), "web"},
		"is to go":           {pod(same), pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), "web"},
		"has another label":  {pod(same), pod(func(p *corev1.Pod) { p.Labels["x"] = "y" }), ""},
		"is another's":       {pod(same), pod(other), "web"},
		"goes":               {pod(same), nil, "web"},
		"goes, having ended": {pod(done), nil, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := watchestest.Happen(t.Context(), handler, c.before, c.after); got != c.want {
				t.Errorf("wakes %q, want %q", got, c.want)
			}
		})
	}
}

// Any number of events compiles the selector of a job once, and only where the event is about labels.
func TestSelectorsAreCompiledOnce(t *testing.T) {
	byPods, byNodes, all := jobNamed("by-pods", "nginx"), jobNamed("by-nodes", "nginx"), jobNamed("all", "nginx")
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	byPods.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{LabelSelector: selector}
	byNodes.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: selector}
	r, compiled := watching(t, byPods, byNodes, all), map[string]int{}
	r.rules = watches.NewRules(func(job *pullJob) (*imagepull.Rule, error) {
		compiled[job.Name]++
		return imagepull.NewRule(job)
	})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: selector.MatchLabels}, Spec: corev1.PodSpec{NodeName: "n"},
	}
	before := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}}
	before.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{{
		Tag: "latest", OwnerReferences: []corev1.ObjectReference{{Namespace: "shop", Name: "all", UID: "all"}},
	}}}}
	before.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{{
		Tag: "latest", Phase: v1beta1.ImagePhasePulling,
	}}}}
	pulled, labelled := before.DeepCopy(), before.DeepCopy()
	pulled.ResourceVersion, labelled.ResourceVersion = "2", "3"
	pulled.Status.ImageStatuses["nginx"].Tags[0].Phase = v1beta1.ImagePhaseSucceeded
	labelled.Labels = selector.MatchLabels
	was := rawNode(t, before)
	for _, c := range []struct {
		event  func() string
		wakes  string
		counts map[string]int
	}{
		{
			func() string { return watchestest.Happen(t.Context(), r.nodeEvents(), was, rawNode(t, pulled)) }, "all",
			map[string]int{},
		},
		{
			func() string { return watchestest.Happen(t.Context(), r.podEvents(), nil, pod) }, "by-pods",
			map[string]int{"by-pods": 1},
		},
		{
			func() string { return watchestest.Happen(t.Context(), r.nodeEvents(), was, rawNode(t, labelled)) }, "by-nodes",
			map[string]int{"by-pods": 1, "by-nodes": 1},
		},
	} {
		for range 100 {
			if got := c.event(); got != c.wakes {
				t.Fatalf("wakes %q, want %q", got, c.wakes)
			}
		}
		if !maps.Equal(compiled, c.counts) {
			t.Errorf("100 events that wake %s have compiled %v, want %v", c.wakes, compiled, c.counts)
		}
	}
}
