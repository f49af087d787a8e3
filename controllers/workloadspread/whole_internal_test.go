package workloadspread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// thin reads pods as the cache of a manager has them.
type thin struct{ client.Client }

func (t thin) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	err := t.Client.List(ctx, into, o...)
	if pods, is := into.(*corev1.PodList); is {
		for i := range pods.Items {
			stored.LeanPod(&pods.Items[i])
		}
	}
	return err
}

// counted counts live reads of pods.
type counted struct {
	client.Reader

	mu   *sync.Mutex
	pods *[]string
}

func (c counted) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if _, is := into.(*corev1.Pod); is {
		c.mu.Lock()
		*c.pods = append(*c.pods, key.Name)
		c.mu.Unlock()
	}
	return c.Reader.Get(ctx, key, into, o...)
}

// patching is a WorkloadSpread over two subsets that suit every node and patch a variable, and what its pods need.
func patching() []client.Object {
	ws := spreadOf(-1, -1)
	for i := range ws.Spec.Subsets {
		s := &ws.Spec.Subsets[i]
		s.RequiredNodeSelector = nil
		s.Patch = runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"spec":{"containers":[{"name":"main","env":[{"name":"ZONE","value":%q}]}]}}`, s.Name),
		}
	}
	return []client.Object{ws, cloneSet(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}
}

// patched is a pod with the patch of a subset, and without the annotation.
func patched(name, zone string) *corev1.Pod {
	pod := spreadPod(name, "a")
	delete(pod.Annotations, kruise.MatchedWorkloadSpreadKey)
	pod.Spec.NodeName = "node-1"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "ZONE", Value: zone}}}}
	return pod
}

// Of two subsets that suit a node, an adopted pod belongs to the one whose patch it has, which a cache without
// variables cannot tell: such a pod is read live, once.
func TestAdoptsByPatch(t *testing.T) {
	c, r := newCluster(t)
	var live []string
	r.api.Live, r.api.Client = counted{r.api.Live, &sync.Mutex{}, &live}, thin{r.api.Client}
	objects := patching()
	for _, zone := range []string{"a", "b"} {
		objects = append(objects, patched("of-"+zone, zone))
	}
	c.put(objects...)
	c.reconcile(r)
	for _, zone := range []string{"a", "b"} {
		var pod corev1.Pod
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "of-" + zone}, &pod); err != nil {
			t.Fatal(err)
		}
		if got := pod.Annotations[kruise.MatchedWorkloadSpreadKey]; !strings.Contains(got, `"subset":"`+zone+`"`) &&
			!strings.Contains(got, `"Subset":"`+zone+`"`) {
			t.Errorf("the pod with the patch of %s got %s", zone, got)
		}
	}
	c.reconcile(r)
	if slices.Sort(live); !slices.Equal(live, []string{"of-a", "of-b"}) {
		t.Errorf("live reads of %v", live)
	}
}

// A pass reads and holds a few whole pods, and later passes read the others, each once.
func TestWholePodsAreBounded(t *testing.T) {
	c, r := newCluster(t)
	var live []string
	now := noon()
	r.api.Live, r.api.Client = counted{r.api.Live, &sync.Mutex{}, &live}, thin{r.api.Client}
	r.api.Now = func() time.Time { return now }
	const pods = 3*maxWhole + 7
	objects := patching()
	for i := range pods {
		objects = append(objects, patched(fmt.Sprintf("web-%02d", i), "b"))
	}
	c.put(objects...)
	for pass := range 4 {
		before := len(live)
		c.reconcile(r)
		if n := len(live) - before; n > maxWhole {
			t.Errorf("pass %d reads %d pods, want at most %d", pass, n, maxWhole)
		}
		now = now.Add(time.Second)
	}
	slices.Sort(live)
	if once := slices.Compact(slices.Clone(live)); len(once) != pods || len(live) != pods {
		t.Errorf("%d reads of %d pods, want one of each of %d", len(live), len(once), pods)
	}
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if m, is := subset.MatchOf(&list.Items[i]); !is || m.Subset != "b" {
			t.Errorf("%s has the subset %q, want that of its patch", list.Items[i].Name, m.Subset)
		}
	}
}

// refused refuses the patches of pods whose names have a prefix.
type refused struct {
	client.Client

	prefix string
}

func (r refused) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if strings.HasPrefix(o.GetName(), r.prefix) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("no"))
	}
	return r.Client.Patch(ctx, o, p, opts...)
}

// Pods that cannot be adopted hold up no others.
func TestRefusedPodsHoldUpNoOthers(t *testing.T) {
	c, r := newCluster(t)
	r.api.Client = refused{thin{r.api.Client}, "refused"}
	objects := patching()
	for i := range 2 * maxWhole {
		name := fmt.Sprintf("refused-%02d", i)
		if i >= maxWhole {
			name = fmt.Sprintf("web-%02d", i)
		}
		objects = append(objects, patched(name, "b"))
	}
	c.put(objects...)
	for range 100 {
		c.show(r)
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(objects[0])})
		if err != nil && !strings.Contains(err.Error(), "forbidden") {
			t.Fatal(err)
		}
	}
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if _, adopted := subset.MatchOf(pod); adopted == strings.HasPrefix(pod.Name, "refused") {
			t.Errorf("%s is adopted: %t", pod.Name, adopted)
		}
	}
}
