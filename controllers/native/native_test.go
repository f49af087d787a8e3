package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/test/objects"
	adapter "github.com/kruisekit/kruisekit/workload/native"
)

// model runs the reconciler beside a small controller of StatefulSets, which creates pods and counts them.
type model struct {
	*testing.T
	*objects.Model

	set     *appsv1.StatefulSet
	options native.Options
}

func newModel(t *testing.T, o native.Options, changes ...func(*appsv1.StatefulSet)) *model {
	t.Helper()
	m := &model{T: t, Model: objects.NewModel(t, &appsv1.StatefulSetList{}, appsv1.AddToScheme), options: o}
	for _, object := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}} {
		if err := owned.Index(t.Context(), m.Server, object); err != nil {
			t.Fatal(err)
		}
	}
	m.restart(m.Server)
	m.set = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "db", Annotations: map[string]string{adapter.RolloutKey: "{}"},
	}}
	m.set.Spec.Replicas = ptr.To(int32(3))
	m.set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	m.set.Spec.Template.Labels = map[string]string{"app": "db"}
	m.set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: "db:1"}}
	m.set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	for _, change := range changes {
		change(m.set)
	}
	if err := m.Server.Create(t.Context(), m.set); err != nil {
		t.Fatal(err)
	}
	return m
}

// restart starts the reconciler again, with a client.
func (m *model) restart(c client.Client) {
	m.Helper()
	o := m.options
	o.Now, o.Recorder, o.Live = m.Now, m.Server, m.Live
	r, err := native.New(c, o)
	m.must(err)
	m.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		m.builtIn()
		return r.StatefulSets().Reconcile(ctx, request)
	})
}

func (m *model) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// builtIn is one pass of the controller of StatefulSets, as far as OnDelete goes.
func (m *model) builtIn() {
	m.Helper()
	m.Look(m.set)
	data, err := revision.Encode(&m.set.Spec.Template)
	m.must(err)
	var stored appsv1.ControllerRevisionList
	m.must(m.Server.List(m.Context(), &stored))
	found := revision.Resolve(revision.Input{Owner: "db", Data: data, Have: revision.ControlledBy(m.set, stored.Items)})
	ref := *metav1.NewControllerRef(m.set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	switch found.Verdict {
	case revision.Create:
		m.must(m.Server.Create(m.Context(), &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: found.Name, Labels: map[string]string{"app": "db"},
				OwnerReferences: []metav1.OwnerReference{ref},
			},
			Data: runtime.RawExtension{Raw: data}, Revision: found.Number,
		}))
	case revision.Bump:
		patch := fmt.Sprintf(`{"revision":%d}`, found.Number)
		m.must(m.Server.Patch(m.Context(), found.Update, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	updated := 0
	for k := range int(*m.set.Spec.Replicas) {
		pod := &corev1.Pod{}
		name := types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("db-%d", k)}
		if err := m.Server.Get(m.Context(), name, pod); err == nil {
			if pod.Labels[appsv1.StatefulSetRevisionLabel] == found.Name {
				updated++
			}
			continue
		}
		pod.ObjectMeta = metav1.ObjectMeta{
			Namespace: "shop", Name: name.Name, OwnerReferences: []metav1.OwnerReference{ref},
			Labels: map[string]string{"app": "db", appsv1.StatefulSetRevisionLabel: found.Name},
		}
		pod.Spec = *m.set.Spec.Template.Spec.DeepCopy()
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		m.must(m.Server.Create(m.Context(), pod))
	}
	before := m.set.DeepCopy()
	m.set.Status.ObservedGeneration, m.set.Status.UpdateRevision = m.set.Generation, found.Name
	m.set.Status.UpdatedReplicas = int32(updated)
	m.must(m.Server.Status().Patch(m.Context(), m.set, client.MergeFrom(before)))
}

func (m *model) status() native.Progress {
	m.Helper()
	m.Look(m.set)
	var progress native.Progress
	text, has := m.set.Annotations[native.StatusKey]
	if has {
		m.must(json.Unmarshal([]byte(text), &progress))
	}
	progress.Revision = ""
	return progress
}

func (m *model) change(f func(*appsv1.StatefulSet)) {
	m.Helper()
	objects.Change(m.Model, m.set, f)
}

// written returns the requests since the last call that change pods and sets, by what they change.
func (m *model) written() map[string]int {
	all := map[string]int{}
	for _, request := range m.Server.Requests() {
		verb, rest, _ := strings.Cut(request, " ")
		resource, name, _ := strings.Cut(strings.Fields(rest)[0], "/")
		if verb == "GET" || strings.HasPrefix(name, "db/status") {
			continue
		}
		_, sub, _ := strings.Cut(name, "/")
		all[strings.TrimSuffix(resource+"/"+sub, "/")]++
	}
	return all
}

func image(tag string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "db:" + tag }
}

func asks(rollout string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Annotations[adapter.RolloutKey] = rollout }
}

func gated(s *appsv1.StatefulSet) {
	s.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
}

// TestRollout counts what an update in place and a recreation cost.
func TestRollout(t *testing.T) {
	env := func(s *appsv1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}
	cases := map[string]struct {
		why    string
		set    func(*appsv1.StatefulSet)
		change func(*appsv1.StatefulSet)
		want   native.Progress
		pods   map[string]int
		kept   bool
	}{
		"in place": {
			why:    "the image, and the label",
			set:    func(*appsv1.StatefulSet) {},
			change: image("2"), kept: true,
			want: native.Progress{State: native.StateComplete, Pods: 3, Ready: 3, Updated: 3, InPlace: 3},
			pods: map[string]int{"pods": 6},
		},
		"with the readiness gate": {
			why: "out of traffic, the image, back, and the label", set: gated, change: image("2"), kept: true,
			want: native.Progress{State: native.StateComplete, Pods: 3, Ready: 3, Updated: 3, InPlace: 3},
			pods: map[string]int{"pods": 6, "pods/status": 6},
		},
		"recreated": {
			why: "an eviction each, and the pods are created by the built-in controller",
			set: func(*appsv1.StatefulSet) {}, change: env,
			want: native.Progress{State: native.StateComplete, Pods: 3, Ready: 3, Updated: 3, Recreated: 3},
			pods: map[string]int{"pods/eviction": 3, "pods": 3},
		},
		"not in place": {
			why: "the set says why it does not go on", set: asks(`{"podUpdatePolicy":"InPlaceOnly"}`), change: env, kept: true,
			want: native.Progress{State: native.StateBlocked, Pods: 3, Ready: 3, Waiting: 3},
			pods: map[string]int{},
		},
		"paused": {
			why: "nothing begins", set: asks(`{"paused":true}`), change: image("2"), kept: true,
			want: native.Progress{State: native.StatePaused, Pods: 3, Ready: 3, Waiting: 3}, pods: map[string]int{},
		},
		"partition": {
			why: "one is updated", set: asks(`{"partition":2}`), change: image("2"), kept: true,
			want: native.Progress{State: native.StateComplete, Pods: 3, Ready: 3, Updated: 1, InPlace: 1},
			pods: map[string]int{"pods": 2},
		},
		"invalid": {
			why: "the set is left as it is", set: asks(`{"partition":"all"}`), change: image("2"), kept: true,
			want: native.Progress{State: native.StateInvalid, Pods: 3, Ready: 3, Waiting: 3}, pods: map[string]int{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, native.Options{}, c.set)
			m.Still()
			m.Advance(time.Minute)
			before := uids(m.Pods())
			m.written()
			m.change(c.change)
			m.Still()
			got := m.status()
			got.Note = ""
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", c.why, d)
			}
			written := m.written()
			delete(written, "controllerrevisions")
			// One is the user's. Three pods go through three numbers each, and one at a time.
			if n := written["statefulsets"]; n > 10 {
				t.Errorf("%d writes of the status", n)
			}
			delete(written, "statefulsets")
			if d := cmp.Diff(c.pods, written); d != "" {
				t.Errorf("%s: %s", c.why, d)
			}
			if kept := slices.Equal(before, uids(m.Pods())); kept != c.kept {
				t.Errorf("%s: the pods are the same: %v", c.why, kept)
			}
		})
	}
}

func uids(pods []*corev1.Pod) (all []string) {
	for _, pod := range pods {
		all = append(all, string(pod.UID))
	}
	return all
}

// TestClass: a set is the installation's whose class it names.
func TestClass(t *testing.T) {
	for name, c := range map[string]struct {
		why, class, asks string
		acts             bool
	}{
		"the same":  {"both have one", "blue", `{"class":"blue"}`, true},
		"another":   {"it is the other installation's", "blue", `{"class":"green"}`, false},
		"of no one": {"it is the one's without a class", "blue", `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, native.Options{Class: c.class}, asks(c.asks))
			m.Still()
			m.change(image("2"))
			m.Still()
			if got := m.status(); (got.InPlace == 3) != c.acts || (got.State != "") != c.acts {
				t.Errorf("%s: %+v", c.why, got)
			}
		})
	}
}

// TestReleased: a set whose annotation is removed in the middle of an update is a plain set again, and no pod stays out
// of traffic.
func TestReleased(t *testing.T) {
	m := newModel(t, native.Options{}, gated, asks(`{"maxUnavailable":2}`))
	m.Still()
	m.change(image("2"))
	m.Reconcile()
	if got := m.status(); got.InProgress != 2 {
		t.Fatalf("%+v", got)
	}
	m.change(func(s *appsv1.StatefulSet) { delete(s.Annotations, adapter.RolloutKey) })
	m.Still()
	m.Look(m.set)
	if text, has := m.set.Annotations[native.StatusKey]; has {
		t.Errorf("the status stays: %s", text)
	}
	images := []string{}
	for _, pod := range m.Pods() {
		images = append(images, pod.Spec.Containers[0].Image)
	}
	if d := cmp.Diff([]string{"db:1", "db:2", "db:2"}, images); d != "" || m.set.Status.UpdatedReplicas != 2 {
		t.Errorf("images: %s, status %+v", d, m.set.Status)
	}
	m.must(m.Server.Delete(m.Context(), m.Pods()[0]))
	m.Still() // a new pod needs its gate opened
	for _, pod := range m.Pods() {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
				t.Errorf("pod %s is not ready", pod.Name)
			}
		}
	}
}

// TestEvents: what happens to pods, and what a user must mend, is told once.
func TestEvents(t *testing.T) {
	m := newModel(t, native.Options{}, asks(`{"maxUnavailable":"3"}`))
	m.Still()
	m.change(asks(`{"maxUnavailable":3}`))
	m.change(image("2"))
	m.Still()
	for reason, want := range map[string]int{
		"InvalidRollout": 1, "UpdatedPodInPlace": 3, "RolloutComplete": 1, "EvictedPod": 0,
	} {
		if got := m.Server.Events(m.set, reason); len(got) != want {
			t.Errorf("%s: %v, want %d", reason, got, want)
		}
	}
}
