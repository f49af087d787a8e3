package uniteddeployment_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// After a takeover the object goes on as its own: a scale-out and a release reach the recorded workloads, and none is created.
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
		if !strings.Contains(requests, "APPLY clonesets/"+name+" 200") {
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
