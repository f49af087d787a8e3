package forecast_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// model is a cluster in which a workload runs.
type model struct {
	*objects.Model

	// wanted is the workload that was forecast last.
	wanted client.Object
}

// newModel has nodes, and the reconciler of the kind of a workload.
func newModel(t testing.TB, workload client.Object) *model {
	t.Helper()
	list := map[string]client.ObjectList{
		"*v1beta1.CloneSet":         &v1beta1.CloneSetList{},
		"*v1beta1.StatefulSet":      &v1beta1.StatefulSetList{},
		"*v1beta1.DaemonSet":        &v1beta1.DaemonSetList{},
		"*v1beta1.SidecarSet":       &v1beta1.SidecarSetList{},
		"*v1beta1.UnitedDeployment": &v1beta1.UnitedDeploymentList{},
	}[fmt.Sprintf("%T", workload)]
	c := &model{Model: objects.NewModel(t, list, v1beta1.AddToScheme)}
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		if err := owned.Index(t.Context(), c.Server, o); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	switch workload.(type) {
	case *v1beta1.CloneSet:
		ids := 0
		c.Reconciler, err = cloneset.New(c.Server, cloneset.Options{
			Now: c.Now, Recorder: c.Server, Live: c.Server,
			NewID: func() string { ids++; return idOf(ids) },
		})
	case *v1beta1.StatefulSet:
		stem := func(pod string) (string, bool) { set, _, ok := ordinals.Split(pod); return set, ok }
		if err := workloads.IndexOrphans(t.Context(), c.Server, "StatefulSet", stem); err != nil {
			t.Fatal(err)
		}
		c.Reconciler, err = statefulset.New(c.Server, statefulset.Options{Now: c.Now, Recorder: c.Server, Live: c.Server})
	case *v1beta1.DaemonSet:
		if err := workloads.IndexOrphans(t.Context(), c.Server, "DaemonSet", workloads.OwnerOfPod); err != nil {
			t.Fatal(err)
		}
		c.Reconciler, err = daemonset.New(c.Server, daemonset.Options{Now: c.Now, Recorder: c.Server, Live: c.Server})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// addNodes adds nodes n1, n2 and so on; every second one has a label.
func (c *model) addNodes(n int) {
	for i := range n {
		node := &corev1.Node{}
		node.Name = fmt.Sprint("n", i+1)
		node.Labels = map[string]string{corev1.LabelHostname: node.Name}
		if i%2 == 0 {
			node.Labels["canary"] = "yes"
		}
		c.Put(node)
	}
}

// workload is a workload of any kind.
type workload interface {
	client.Object
	Default()
}

// forecastOf forecasts a change of a workload.
func forecastOf[T workload](
	t *testing.T, c *model, set T, o forecast.Options, change func(T), more ...client.Object,
) *forecast.Forecast {
	t.Helper()
	c.Look(set)
	wanted, is := set.DeepCopyObject().(T)
	if !is {
		t.Fatalf("the copy of %T is another type", set)
	}
	change(wanted)
	wanted.Default()
	c.wanted = wanted
	objects := append(c.all(t), more...)
	for _, object := range objects { // as API servers store it, with the grace period
		if at := object.GetDeletionTimestamp(); at != nil {
			object.SetDeletionTimestamp(&metav1.Time{Time: at.Add(time.Duration(o.Pace.End))})
		}
	}
	in := forecast.Input{Now: c.Now(), Live: set, Wanted: wanted, Objects: objects, Options: o}
	f, err := forecast.Of(t.Context(), in)
	again, failed := forecast.Of(t.Context(), in)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again); diff != "" {
		t.Errorf("another forecast for the same input (-first +again):\n%s", diff)
	}
	return f
}

// apply applies what was forecast.
func (w *world) apply(t *testing.T, live client.Object) {
	t.Helper()
	w.watch()
	w.wanted.SetGeneration(live.GetGeneration() + 1)
	w.Put(w.wanted)
	w.rest(15)
}

// all are the objects of the cluster.
func (c *model) all(t testing.TB) []client.Object {
	t.Helper()
	var all []client.Object
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &appsv1.ControllerRevisionList{}, &corev1.NodeList{}, &corev1.PersistentVolumeClaimList{},
	} {
		all = append(all, c.list(t, list)...)
	}
	return all
}

// list returns the objects of a list.
func (c *model) list(t testing.TB, list client.ObjectList) (all []client.Object) {
	t.Helper()
	if err := c.Server.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		object, is := o.(client.Object)
		if !is {
			t.Fatalf("%T is no object", o)
		}
		all = append(all, object)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func web(replicas int32, changes ...func(*v1beta1.CloneSet)) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	set.Spec.Replicas = &replicas
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "app", Image: "web:1"}, {Name: "log", Image: "log:1"},
	}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
		MaxUnavailable:  amount("2"),
	}
	for _, change := range changes {
		change(set)
	}
	set.Default()
	return set
}

func amount(text string) *intstr.IntOrString {
	v := intstr.Parse(text)
	return &v
}

func image(name string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

func all(changes ...func(*v1beta1.CloneSet)) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		for _, change := range changes {
			change(set)
		}
	}
}

func partition(n string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = amount(n) }
}

func TestCloneSet(t *testing.T) {
	for name, c := range map[string]struct {
		set    *v1beta1.CloneSet
		opts   forecast.Options
		change func(*v1beta1.CloneSet)
	}{
		"in place":  {set: web(5), change: image("web:2")},
		"partition": {set: web(5), change: all(image("web:2"), partition("3"))},
		"nothing":   {set: web(3), change: all()},
		"defaults": {set: web(2, func(set *v1beta1.CloneSet) { // as admission fills them in
			spec := &set.Spec.Template.Spec
			spec.DNSPolicy, spec.RestartPolicy = corev1.DNSClusterFirst, corev1.RestartPolicyAlways
			spec.TerminationGracePeriodSeconds, spec.SchedulerName = ptrTo(int64(30)), corev1.DefaultSchedulerName
			spec.SecurityContext = &corev1.PodSecurityContext{}
			for i := range spec.Containers {
				c := &spec.Containers[i]
				c.TerminationMessagePath, c.TerminationMessagePolicy = "/dev/termination-log", corev1.TerminationMessageReadFile
				c.ImagePullPolicy = corev1.PullIfNotPresent
			}
		}), change: func(set *v1beta1.CloneSet) { // and as a manifest lacks them
			set.Spec.Template.Spec = corev1.PodSpec{Containers: web(0).Spec.Template.Spec.Containers}
		}},
		"a command": {set: web(4), change: func(set *v1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[1].Command = []string{"sh"}
		}},
		"a label": {set: web(3), change: func(set *v1beta1.CloneSet) {
			set.Spec.Template.Annotations = map[string]string{"note": "new"}
		}},
		"scale in":  {set: web(4), change: func(set *v1beta1.CloneSet) { *set.Spec.Replicas = 2 }},
		"scale out": {set: web(2), change: func(set *v1beta1.CloneSet) { *set.Spec.Replicas = 4 }},
		"paused": {set: web(2), change: all(image("web:2"), func(set *v1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Paused = true
		})},
		"recreate": {set: web(3, func(set *v1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdateStrategyType
			set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = amount("1")
		}), change: image("web:2")},
		"hook held": {set: web(3, hooked), opts: forecast.Options{HoldHooks: true}, change: image("web:2")},
		"hook":      {set: web(3, hooked), change: image("web:2")},
	} {
		t.Run(name, func(t *testing.T) {
			f := forecastOf(t, atRest(t, c.set), c.set, c.opts, c.change)
			compareText(t, "cloneset "+name, f)
			if name == "partition" {
				compareJSON(t, "cloneset "+name+" json", f)
			}
		})
	}
}

// atRest is a cluster in which a workload has existed for an hour.
func atRest(t *testing.T, set client.Object) *model {
	t.Helper()
	c := newModel(t, set)
	c.addNodes(4)
	c.Put(set)
	c.Advance(time.Second)
	c.Still()
	c.Advance(time.Hour)
	return c
}

func compareText(t *testing.T, name string, f *forecast.Forecast) {
	t.Helper()
	var text bytes.Buffer
	if err := f.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	storytest.Compare(t, name, text.String())
}

func hooked(set *v1beta1.CloneSet) {
	set.Spec.Lifecycle = &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{
		LabelsHandler: map[string]string{"drain": "yes"},
	}}
	set.Spec.Template.Labels["drain"] = "yes"
}

// compareJSON compares what is printed for machines, and reads it back.
func compareJSON(t *testing.T, name string, f *forecast.Forecast) {
	t.Helper()
	var text bytes.Buffer
	if err := f.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	storytest.Compare(t, name, text.String())
	var back forecast.Forecast
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, &back); diff != "" {
		t.Errorf("read back (-written +read):\n%s", diff)
	}
}

// idOf is a, b and so on, and a number after z.
func idOf(n int) string {
	if n <= 26 {
		return string(rune('a' - 1 + n))
	}
	return fmt.Sprint("z", n)
}
