package probes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers/nodepodprobe"
	"github.com/kruisekit/kruisekit/controllers/podprobemarker"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// world is a cluster in memory with the production reconcilers and a stand-in for the daemons.
type world struct {
	testing.TB
	*apiserver.Server

	now          time.Time
	nodes, ppms  reconcile.Reconciler
	options      podprobemarker.Options
	api          *faulty
	good         map[string]bool   // by pod UID and probe
	messages     map[string]string // by the same
	fresh        map[string]bool   // the UIDs of pods whose container has just started
	daemonWrites int
}

// faulty is a client with a cache that a test holds back, and with writes that a test lets fail.
type faulty struct {
	*apiserver.Server
	// cache is what is read; nil for what is stored.
	cache *apiserver.Server
	// fault decides about the next write: whether it is made, and its answer. Reconcilers write in parallel, and mu has
	// them ask one after the other.
	mu    sync.Mutex
	fault func() (made bool, err error)
}

func (f *faulty) reader() *apiserver.Server {
	if f.cache != nil {
		return f.cache
	}
	return f.Server
}

func (f *faulty) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	return f.reader().Get(ctx, key, into, o...)
}

func (f *faulty) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	return f.reader().List(ctx, into, o...)
}

func (f *faulty) write(do func() error) error {
	if f.fault == nil {
		return do()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	made, fault := f.fault()
	if made {
		if err := do(); err != nil {
			return err
		}
	}
	return fault
}

func (f *faulty) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return f.write(func() error { return f.Server.Create(ctx, o, opts...) })
}

func (f *faulty) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return f.write(func() error { return f.Server.Delete(ctx, o, opts...) })
}

func (f *faulty) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return f.write(func() error { return f.Server.Patch(ctx, o, p, opts...) })
}

func (f *faulty) Status() client.SubResourceWriter { return status{f.Server.Status(), f} }

type status struct {
	client.SubResourceWriter
	f *faulty
}

func (s status) Patch(
	ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
) error {
	return s.f.write(func() error { return s.SubResourceWriter.Patch(ctx, o, p, opts...) })
}

func newWorld(t testing.TB) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{TB: t, now: time.Unix(1_800_000_000, 0), good: map[string]bool{}, messages: map[string]string{}}
	w.Server = apiserver.New(scheme, func() time.Time { return w.now })
	w.api = &faulty{Server: w.Server}
	_ = w.IndexField(t.Context(), &corev1.Pod{}, markers.NodeField, markers.NodeOf)
	_ = w.IndexField(t.Context(), stored.Untyped(markers.NodeGVK()), markers.ProbedField, markers.ProbedOf)
	w.boot()
	return w
}

// boot starts a new manager.
func (w *world) boot() {
	w.Helper()
	now := func() time.Time { return w.now }
	nodes, err := nodepodprobe.New(w.api, nodepodprobe.Options{Now: now, Live: w.Server})
	if err != nil {
		w.Fatal(err)
	}
	w.options.Now, w.options.Live = now, w.Server
	ppms, err := podprobemarker.New(w.api, w.options)
	if err != nil {
		w.Fatal(err)
	}
	w.nodes, w.ppms = nodes, ppms
}

func (w *world) put(all ...client.Object) {
	w.Helper()
	for _, o := range all {
		if err := w.Put(o); err != nil {
			w.Fatal(err)
		}
	}
}

func request(name types.NamespacedName) ctrl.Request { return ctrl.Request{NamespacedName: name} }

func nodeOf(name string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func podOf(name, node, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": app}, UID: types.UID("uid-" + name),
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
}

// markerOf marks pods with a condition, a label and an annotation that are named after the probe.
func markerOf(name, app string, probes ...string) *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	for _, probe := range probes {
		p := v1alpha1.PodContainerProbe{
			Name: probe, ContainerName: "main", PodConditionType: "example.com/" + name + "-" + probe,
		}
		p.Probe.Exec = &corev1.ExecAction{Command: []string{probe}}
		p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
			{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{name + "-" + probe: "good"}},
			{
				State:       v1alpha1.ProbeFailed,
				Labels:      map[string]string{name + "-" + probe: "bad"},
				Annotations: map[string]string{name + "-" + probe: "bad"},
			},
		}
		m.Spec.Probes = append(m.Spec.Probes, p)
	}
	return m
}

func list[T any](w *world, into client.ObjectList, items func() []T) []T {
	w.Helper()
	if err := w.List(w.Context(), into); err != nil {
		w.Fatal(err)
	}
	return items()
}

func (w *world) pods() []corev1.Pod {
	var l corev1.PodList
	return list(w, &l, func() []corev1.Pod { return l.Items })
}

func (w *world) probes() []v1alpha1.NodePodProbe {
	var l v1alpha1.NodePodProbeList
	return list(w, &l, func() []v1alpha1.NodePodProbe { return l.Items })
}

func (w *world) allMarkers() []v1alpha1.PodProbeMarker {
	var l v1alpha1.PodProbeMarkerList
	return list(w, &l, func() []v1alpha1.PodProbeMarker { return l.Items })
}

// names of everything that may be reconciled.
func (w *world) names() (nodes, ppms []types.NamespacedName) {
	seen := map[string]bool{}
	var l corev1.NodeList
	for _, n := range list(w, &l, func() []corev1.Node { return l.Items }) {
		seen[n.Name] = true
	}
	for _, n := range w.probes() {
		seen[n.Name] = true
	}
	for name := range seen {
		nodes = append(nodes, types.NamespacedName{Name: name})
	}
	slices.SortFunc(nodes, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range w.allMarkers() {
		ppms = append(ppms, types.NamespacedName{Namespace: m.Namespace, Name: m.Name})
	}
	return nodes, ppms
}

// turn reconciles everything once, and has the daemons report. Errors are those of faults.
func (w *world) turn() {
	w.Helper()
	nodes, ppms := w.names()
	for _, name := range ppms {
		_, _ = w.ppms.Reconcile(w.Context(), ctrl.Request{NamespacedName: name})
	}
	for _, name := range nodes {
		_, _ = w.nodes.Reconcile(w.Context(), ctrl.Request{NamespacedName: name})
	}
	w.daemons()
	w.now = w.now.Add(time.Second)
}

// still runs until nothing is written any more, and returns the writes of the reconcilers.
func (w *world) still() []string {
	w.Helper()
	w.Requests()
	var all []string
	for range 30 {
		before := w.Version()
		w.turn()
		all = append(all, w.writes()...)
		if w.Version() == before {
			return all
		}
	}
	w.Fatalf("the world does not come to rest: %v", all[max(0, len(all)-20):])
	return nil
}

// writes of the reconcilers since the last time, without those of the daemons.
func (w *world) writes() []string {
	return slices.DeleteFunc(w.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "GET") || strings.HasPrefix(r, "PATCH nodepodprobes") && strings.Contains(r, "/status ")
	})
}

// daemons report the answers of all probes.
func (w *world) daemons() {
	w.Helper()
	for _, n := range w.probes() {
		findings := map[podprobe.Key]podprobe.Memory{}
		for _, p := range n.Spec.PodProbes {
			for _, c := range p.Probes {
				f := podprobe.Memory{State: v1alpha1.ProbeFailed, At: w.now, Message: w.messages[p.UID+" "+c.Name]}
				if w.good[p.UID+" "+c.Name] {
					f.State = v1alpha1.ProbeSucceeded
				}
				if w.fresh[p.UID] {
					f.State, f.Message = v1alpha1.ProbeUnknown, ""
				}
				findings[podprobe.Key{UID: p.UID, Name: c.Name}] = f
			}
		}
		status, _ := podprobe.Report(podprobe.Reporting{Spec: &n.Spec, Status: &n.Status, Findings: findings})
		if podprobe.Compare(&n.Status, &status) == podprobe.Unchanged {
			continue
		}
		write := podprobe.StatusWrite(&n, status)
		data, err := write.Data()
		if err != nil {
			w.Fatal(err)
		}
		w.daemonWrites++
		if err := w.Status().Patch(w.Context(), &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: n.Name}},
			client.RawPatch(write.Type, data)); err != nil {
			w.Fatalf("a daemon cannot report: %v: %s", err, data)
		}
	}
}

// shown is what markers have made of a pod, in short.
func shown(pod *corev1.Pod) string {
	var parts []string
	for _, c := range pod.Status.Conditions {
		if after, ok := strings.CutPrefix(string(c.Type), "example.com/"); ok {
			parts = append(parts, fmt.Sprintf("%s=%s", after, c.Status))
		}
	}
	slices.Sort(parts)
	for _, key := range slices.Sorted(maps.Keys(pod.Labels)) {
		parts = append(parts, key+":"+pod.Labels[key])
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		parts = append(parts, "@"+key+":"+pod.Annotations[key])
	}
	return strings.Join(parts, " ")
}

func (w *world) shown() map[string]string {
	all := map[string]string{}
	for _, pod := range w.pods() {
		all[pod.Name] = shown(&pod)
	}
	return all
}

// asked is what all nodes probe, in short.
func (w *world) asked() map[string]string {
	all := map[string]string{}
	for _, n := range w.probes() {
		var parts []string
		for _, p := range n.Spec.PodProbes {
			for _, c := range p.Probes {
				parts = append(parts, p.Name+"/"+c.Name)
			}
		}
		all[n.Name] = strings.Join(parts, " ")
	}
	return all
}

func (w *world) change(name string, change func(*v1alpha1.PodProbeMarker)) {
	w.Helper()
	m := &v1alpha1.PodProbeMarker{}
	if err := w.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: name}, m); err != nil {
		w.Fatal(err)
	}
	change(m)
	m.Generation++
	w.put(m)
}
