package uniteddeployment_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// recorded stores the object, the workloads and the revisions that OpenKruise left.
func (m *model) recorded(state, version string) *v1beta1.UnitedDeployment {
	m.Helper()
	all := m.Recorded(state, version,
		&v1beta1.UnitedDeploymentList{}, &v1beta1.CloneSetList{}, &appsv1.ControllerRevisionList{})
	u, is := all[0].(*v1beta1.UnitedDeployment)
	if !is || len(all) != 4 {
		m.Fatalf("%d recorded objects", len(all))
	}
	return u
}

// An object that OpenKruise has created, is updating or has updated is continued without a write, also of a pod.
func TestTakeover(t *testing.T) {
	for _, state := range []string{"1-created", "2-updating", "3-updated"} {
		for _, version := range []string{"v1beta1", "v1alpha1"} {
			t.Run(state+" "+version, func(t *testing.T) {
				m := newModel(t)
				m.recorded(state, version)
				m.Reconcile()
				m.Reconcile()
				if requests := m.Server.Requests(); len(requests) > 0 {
					t.Errorf("a pass asks %q", requests)
				}
			})
		}
	}
}

// The revision that OpenKruise up to 1.8 stored of a CloneSet in the shape of v1alpha1 stays the newest one: no
// workload and no pod changes.
func TestTakeoverOfOlderShape(t *testing.T) {
	m := newModel(t)
	labels, most := map[string]string{"app": "web"}, intstr.FromString("50%")
	old := v1alpha1.UnitedDeployment{}
	template := &v1alpha1.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	template.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	template.Spec.Template.Labels = labels
	template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	template.Spec.UpdateStrategy.Type,
		template.Spec.UpdateStrategy.MaxUnavailable = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, &most
	old.Spec.Template.CloneSetTemplate = template
	hub := v1beta1.UnitedDeployment{}
	if err := old.ConvertTo(&hub); err != nil {
		t.Fatal(err)
	}
	u := m.create("web", 4, "a,b", func(u *v1beta1.UnitedDeployment) {
		u.Annotations, u.Spec.Template = hub.Annotations, hub.Spec.Template
	})
	m.rest()
	var revisions appsv1.ControllerRevisionList
	if err := m.Server.List(t.Context(), &revisions); err != nil || len(revisions.Items) != 1 {
		t.Fatal(err, len(revisions.Items))
	}
	stored, err := json.Marshal(map[string]any{"$patch": "replace", "cloneSetTemplate": template})
	if err != nil {
		t.Fatal(err)
	}
	revisions.Items[0].Data.Raw = fmt.Appendf(nil, `{"spec":{"template":%s}}`, stored)
	if err := m.Server.Put(&revisions.Items[0]); err != nil {
		t.Fatal(err)
	}
	m.restart(m.Server)
	m.Server.Requests()
	m.Reconcile()
	m.Reconcile()
	if requests := m.Server.Requests(); len(requests) > 0 {
		t.Errorf("a pass asks %q", requests)
	}
	m.Look(u)
	if u.Status.UpdatedRevision != revisions.Items[0].Name {
		t.Errorf("the updated revision is %s, not %s", u.Status.UpdatedRevision, revisions.Items[0].Name)
	}
}

// store stores an object as it is, at a time when it exists.
func (m *model) store(o client.Object) {
	m.Helper()
	if at := o.GetCreationTimestamp(); at.After(m.Clock) {
		m.Clock = at.Add(time.Minute)
	}
	if err := m.Server.Put(o); err != nil {
		m.Fatal(err)
	}
}

// After a takeover the object goes on as its own: a scale-out and a release reach the recorded workloads, and none is
// created.
func TestTakeoverGoesOn(t *testing.T) {
	m := newModel(t)
	u := m.recorded("1-created", "v1beta1")
	m.change(u, scaled(6), image("nginx:2"))
	m.Server.Requests()
	m.Reconcile()
	requests := strings.Join(m.Server.Requests(), "\n")
	for _, name := range []string{"zones-a-p4q4g", "zones-b-hh6zh"} {
		if !strings.Contains(requests, "PATCH clonesets/"+name+" 200") {
			t.Errorf("%s was not written:\n%s", name, requests)
		}
	}
	if n := strings.Count(requests, "\n") + 1; n != 4 {
		t.Errorf("%d requests:\n%s", n, requests)
	}
	if c := m.child(u, "b"); c.Replicas != 5 {
		t.Errorf("%d replicas", c.Replicas)
	}
}
