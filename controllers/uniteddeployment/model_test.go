package uniteddeployment_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/test/objects"
)

// zone is the label of nodes by which the subsets of these tests choose.
const zone = "topology.kubernetes.io/zone"

// model runs the reconciler, the controllers of the workloads, and a scheduler whose zones have room for some pods.
type model struct {
	*testing.T
	*objects.Model

	// room is how many pods a zone runs; a zone that is not in it has no end.
	room map[string]int
	// story is the object of a story.
	story *v1beta1.UnitedDeployment
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{
		T: t, Model: objects.NewModel(t, &v1beta1.UnitedDeploymentList{}, v1beta1.AddToScheme), room: map[string]int{},
	}
	if err := errors.Join(owned.Index(t.Context(), m.Server, &corev1.Pod{}),
		uniteddeployment.IndexPods(t.Context(), m.Server)); err != nil {
		t.Fatal(err)
	}
	m.restart(m.Server)
	return m
}

// cached is a client whose reads are packed, as those from the cache of the manager are.
type cached struct{ client.Client }

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, o, options...)
	if raw, untyped := o.(*unstructured.Unstructured); untyped {
		stored.Pack(raw)
	}
	return err
}

func (c cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	if raw, untyped := list.(*unstructured.UnstructuredList); untyped {
		for i := range raw.Items {
			stored.Pack(&raw.Items[i])
		}
	}
	return err
}

// restart starts another reconciler in the place of the one before, with a client of the server.
func (m *model) restart(c client.Client) {
	m.Helper()
	r, err := uniteddeployment.New(cached{c}, uniteddeployment.Options{Now: m.Now, Recorder: m.Server, Live: m.Live})
	if err != nil {
		m.Fatal(err)
	}
	m.Reconciler = r
}

type change = func(*v1beta1.UnitedDeployment)

// create creates an object with a CloneSet in each of some zones, and what changes add.
func (m *model) create(name string, replicas int32, zones string, changes ...change) *v1beta1.UnitedDeployment {
	m.Helper()
	u := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	u.Spec.Replicas = &replicas
	labels := map[string]string{"app": name}
	u.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	t := &v1beta1.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	t.Spec.Template.Labels = labels
	t.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	u.Spec.Template.CloneSetTemplate = t
	for zone := range strings.SplitSeq(zones, ",") {
		u.Spec.Topology.Subsets = append(u.Spec.Topology.Subsets, inZone(zone))
	}
	for _, change := range changes {
		change(u)
	}
	if err := m.Server.Create(m.Context(), u); err != nil {
		m.Fatal(err)
	}
	return u
}

// inZone reads a subset of the name of its zone: "a", "a=3", "a<3" at most, "a>3" at least.
func inZone(text string) v1beta1.Subset {
	end := strings.IndexAny(text+"=", "=<>")
	s := v1beta1.Subset{Name: text[:end]}
	s.NodeSelectorTerm.MatchExpressions = []corev1.NodeSelectorRequirement{{
		Key: zone, Operator: corev1.NodeSelectorOpIn, Values: []string{s.Name},
	}}
	if end < len(text) {
		v := intstr.Parse(text[end+1:])
		switch text[end] {
		case '=':
			s.Replicas = &v
		case '<':
			s.MaxReplicas = &v
		case '>':
			s.MinReplicas = &v
		}
	}
	return s
}

// change patches the object.
func (m *model) change(u *v1beta1.UnitedDeployment, changes ...change) {
	m.Helper()
	objects.Change(m.Model, u, func(u *v1beta1.UnitedDeployment) {
		for _, change := range changes {
			change(u)
		}
	})
}

func scaled(n int32) change { return func(u *v1beta1.UnitedDeployment) { u.Spec.Replicas = &n } }

func podsOf(u *v1beta1.UnitedDeployment) *corev1.PodTemplateSpec {
	switch t := &u.Spec.Template; {
	case t.CloneSetTemplate != nil:
		return &t.CloneSetTemplate.Spec.Template
	case t.StatefulSetTemplate != nil:
		return &t.StatefulSetTemplate.Spec.Template
	case t.AdvancedStatefulSetTemplate != nil:
		return &t.AdvancedStatefulSetTemplate.Spec.Template
	}
	return &u.Spec.Template.DeploymentTemplate.Spec.Template
}

func image(name string) change {
	return func(u *v1beta1.UnitedDeployment) { podsOf(u).Spec.Containers[0].Image = name }
}

// of gives the object another kind of workload.
func of(kind string) change {
	return func(u *v1beta1.UnitedDeployment) {
		pods, metadata := *podsOf(u), metav1.ObjectMeta{Labels: podsOf(u).Labels}
		u.Spec.Template = v1beta1.SubsetTemplate{}
		switch kind {
		case "CloneSet":
			u.Spec.Template.CloneSetTemplate = &v1beta1.CloneSetTemplateSpec{
				ObjectMeta: metadata, Spec: v1beta1.CloneSetSpec{Template: pods},
			}
		case "Deployment":
			u.Spec.Template.DeploymentTemplate = &v1beta1.DeploymentTemplateSpec{
				ObjectMeta: metadata, Spec: appsv1.DeploymentSpec{Template: pods},
			}
		case "StatefulSet":
			u.Spec.Template.StatefulSetTemplate = &v1beta1.StatefulSetTemplateSpec{
				ObjectMeta: metadata, Spec: appsv1.StatefulSetSpec{Template: pods},
			}
		case "Advanced":
			u.Spec.Template.AdvancedStatefulSetTemplate = &v1beta1.AdvancedStatefulSetTemplateSpec{
				ObjectMeta: metadata, Spec: v1beta1.StatefulSetSpec{Template: pods},
			}
		}
	}
}

func adaptive(critical, duration int32, reserve bool) change {
	return func(u *v1beta1.UnitedDeployment) {
		u.Spec.Topology.ScheduleStrategy = v1beta1.UnitedDeploymentScheduleStrategy{
			Type: v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType, Adaptive: &v1beta1.AdaptiveUnitedDeploymentStrategy{
				RescheduleCriticalSeconds: &critical, UnschedulableDuration: &duration, ReserveUnschedulablePods: reserve,
			},
		}
	}
}

func partitions(p map[string]int32) change {
	return func(u *v1beta1.UnitedDeployment) {
		u.Spec.UpdateStrategy.ManualUpdate = &v1beta1.ManualUpdate{Partitions: p}
	}
}

// children returns the workloads of all kinds that an object controls, by name.
func (m *model) children(u *v1beta1.UnitedDeployment) []*subsets.Child {
	m.Helper()
	var all []*subsets.Child
	namespace := "shop"
	if u != nil {
		namespace = u.Namespace
	}
	for _, kind := range subsets.Kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := m.Server.List(m.Context(), list, client.InNamespace(namespace)); err != nil {
			m.Fatal(err)
		}
		for i := range list.Items {
			if u == nil || owned.Controls(u, &list.Items[i]) {
				all = append(all, subsets.Observe(kind, &list.Items[i]))
			}
		}
	}
	slices.SortFunc(all, func(a, b *subsets.Child) int { return cmp.Compare(a.Object.GetName(), b.Object.GetName()) })
	return all
}

// child returns the workload of a subset.
func (m *model) child(u *v1beta1.UnitedDeployment, subset string) *subsets.Child {
	m.Helper()
	for _, c := range m.children(u) {
		if c.Subset == subset {
			return c
		}
	}
	m.Fatalf("subset %s has no workload", subset)
	return nil
}

// picture is the workloads of an object: each with the replicas that it is to have, its partition, and its pods. A pod
// is the release of its image; a question mark is not ready, and an R reserved.
func (m *model) picture(u *v1beta1.UnitedDeployment) string {
	m.Helper()
	var all []string
	for _, c := range m.children(u) {
		var pods []string
		for _, pod := range m.pods(c.Owns) {
			_, text, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
			if !isReady(pod) {
				text += "?"
			}
			if pod.Labels[kruise.UnitedDeploymentReservedPodKey] == "true" {
				text += "R"
			}
			pods = append(pods, text)
		}
		slices.Sort(pods)
		text := fmt.Sprintf("%s %d", c.Subset, c.Replicas)
		if c.Partition > 0 {
			text += fmt.Sprintf("/%d", c.Partition)
		}
		all = append(all, fmt.Sprintf("%s [%s]", text, strings.Join(pods, " ")))
	}
	return strings.Join(all, ", ")
}

// world moves everything but the reconciler: the controllers of the workloads, the scheduler and the kubelets. It
// reports whether anything changed.
func (m *model) world() bool {
	m.Helper()
	before := m.Server.Version()
	m.collect()
	for _, c := range m.children(nil) {
		if c.Revision != "" {
			m.run(c)
		}
	}
	m.schedule()
	for _, c := range m.children(nil) {
		if c.Revision != "" {
			m.count(c)
		}
	}
	m.Server.Requests() // not those of the reconciler
	return m.Server.Version() != before
}

// collect deletes the pods whose workload is gone.
func (m *model) collect() {
	m.Helper()
	all := m.children(nil)
	for _, pod := range m.pods(func(pod *corev1.Pod) bool {
		return !slices.ContainsFunc(all, func(c *subsets.Child) bool { return c.Owns(pod) })
	}) {
		if err := m.Server.Delete(m.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			m.Fatal(err)
		}
	}
}

// rest runs until nothing is left to do now.
func (m *model) rest() {
	m.Helper()
	for range 300 {
		before := m.Server.Version()
		m.Reconcile()
		m.world()
		m.Advance(50 * time.Millisecond)
		if m.Server.Version() == before {
			return
		}
	}
	m.Fatalf("no rest: %q", m.Server.Requests())
}

// pass runs for a time, from one timer to the next.
func (m *model) pass(d time.Duration) {
	m.Helper()
	end := m.Clock.Add(d)
	for range 300 {
		m.rest()
		if m.Due.IsZero() || m.Due.After(end) {
			m.Clock = end
			m.rest()
			return
		}
		m.Clock = m.Due
	}
	m.Fatal("the timers have no end")
}

// put stores an object as it is, if it differs.
func (m *model) put(o client.Object) {
	m.Helper()
	stored, is := o.DeepCopyObject().(client.Object)
	if !is {
		m.Fatalf("%T is no object", o)
	}
	m.Look(stored)
	if apiequality.Semantic.DeepEqual(stored, o) {
		return
	}
	if err := m.Server.Put(o); err != nil {
		m.Fatal(err)
	}
}

func (m *model) get(name client.ObjectKey, into client.Object) {
	m.Helper()
	if err := m.Server.Get(m.Context(), name, into); err != nil && !apierrors.IsNotFound(err) {
		m.Fatal(err)
	}
}
