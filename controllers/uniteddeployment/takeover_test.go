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
	"github.com/kruisekit/kruisekit/test/objects"
)

// An object that OpenKruise has created, is updating or has updated is continued without a write, also of a pod.
func TestTakeover(t *testing.T) {
	for _, state := range []string{"1-created", "2-updating", "3-updated"} {
		for _, version := range []string{"v1beta1", "v1alpha1"} {
			t.Run(state+" "+version, func(t *testing.T) {
				m := newModel(t)
				var all v1beta1.UnitedDeploymentList
				var sets v1beta1.CloneSetList
				var revisions appsv1.ControllerRevisionList
				objects.Recorded(t, state+"/uniteddeployments.v1beta1.yaml", &all)
				objects.Recorded(t, state+"/clonesets.v1beta1.yaml", &sets)
				objects.Recorded(t, state+"/controllerrevisions.yaml", &revisions)
				u, n := &all.Items[0], 0
				take := func(o client.Object) {
					if ref := metav1.GetControllerOf(o); ref == nil || ref.UID != u.UID {
						return
					}
					o.GetOwnerReferences()[0].APIVersion = "apps.kruise.io/" + version
					m.store(o)
					n++
				}
				m.store(u)
				for i := range sets.Items {
					take(&sets.Items[i])
				}
				for i := range revisions.Items {
					take(&revisions.Items[i])
				}
				if n != 3 {
					t.Fatalf("%d recorded workloads and revisions", n)
				}
				m.Server.Requests()
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
	m.look(u)
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
	var all v1beta1.UnitedDeploymentList
	var sets v1beta1.CloneSetList
	var revisions appsv1.ControllerRevisionList
	objects.Recorded(t, "1-created/uniteddeployments.v1beta1.yaml", &all)
	objects.Recorded(t, "1-created/clonesets.v1beta1.yaml", &sets)
	objects.Recorded(t, "1-created/controllerrevisions.yaml", &revisions)
	u := &all.Items[0]
	m.store(u)
	for i := range sets.Items {
		m.store(&sets.Items[i])
	}
	for i := range revisions.Items {
		m.store(&revisions.Items[i])
	}
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
