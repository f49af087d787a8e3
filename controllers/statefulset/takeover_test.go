package statefulset_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
)

// recorded reads a list of objects that OpenKruise left in a cluster.
func recorded(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("../../test/compat/testdata/recorded/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// A set that OpenKruise has created or updated is continued without a write, and one whose pods it has just updated, with a write of the
// status alone.
func TestTakeover(t *testing.T) {
	cases := map[string]struct {
		why, state, version string
		want                []string
	}{
		"created":          {"nothing is left to do", "1-created", "v1beta1", nil},
		"created, v1alpha": {"references of the older version count", "1-created", "v1alpha1", nil},
		"updating":         {"the pods were recorded after the set: the status completes the rollout", "2-updating", "v1beta1", []string{"PATCH statefulsets/db/status 200"}},
		"updated":          {"nothing is left to do", "3-updated", "v1beta1", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, statefulset.Options{})
			n := 0
			var sets v1beta1.StatefulSetList
			var pods corev1.PodList
			var revisions appsv1.ControllerRevisionList
			recorded(t, c.state+"/statefulsets.v1beta1.yaml", &sets)
			recorded(t, c.state+"/pods.yaml", &pods)
			recorded(t, c.state+"/controllerrevisions.yaml", &revisions)
			take := func(o client.Object) {
				if ref := metav1.GetControllerOf(o); ref == nil || ref.UID != sets.Items[0].UID {
					return
				}
				o.GetOwnerReferences()[0].APIVersion = "apps.kruise.io/" + c.version
				m.put(o)
				n++
			}
			m.put(&sets.Items[0])
			for i := range pods.Items {
				take(&pods.Items[i])
			}
			for i := range revisions.Items {
				take(&revisions.Items[i])
			}
			if n < 4 {
				t.Fatalf("%d recorded pods and revisions", n)
			}
			m.Server.Requests()
			m.Reconcile()
			m.Reconcile()
			if diff := cmp.Diff(c.want, m.Server.Requests()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// put stores an object as it is, at a time when it exists.
func (m *model) put(o client.Object) {
	m.Helper()
	if at := o.GetCreationTimestamp(); at.After(m.Clock) {
		m.Clock = at.Add(time.Minute)
	}
	if err := m.Server.Put(o); err != nil {
		m.Fatal(err)
	}
}
