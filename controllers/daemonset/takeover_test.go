package daemonset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/test/objects"
)

// remains are the objects of a set as OpenKruise left them.
type remains struct {
	set       v1beta1.DaemonSet
	pods      []*corev1.Pod
	revisions []*appsv1.ControllerRevision
}

func remainsOf(t *testing.T, state, version string) *remains {
	t.Helper()
	var sets v1beta1.DaemonSetList
	var pods corev1.PodList
	var revisions appsv1.ControllerRevisionList
	objects.Recorded(t, state+"/daemonsets.v1beta1.yaml", &sets)
	objects.Recorded(t, state+"/pods.yaml", &pods)
	objects.Recorded(t, state+"/controllerrevisions.yaml", &revisions)
	r := &remains{set: sets.Items[0]}
	owned := func(o client.Object) bool {
		ref := metav1.GetControllerOf(o)
		if ref == nil || ref.UID != r.set.UID {
			return false
		}
		o.GetOwnerReferences()[0].APIVersion = "apps.kruise.io/" + version
		return true
	}
	for i := range pods.Items {
		if owned(&pods.Items[i]) {
			r.pods = append(r.pods, &pods.Items[i])
		}
	}
	for i := range revisions.Items {
		if owned(&revisions.Items[i]) {
			r.revisions = append(r.revisions, &revisions.Items[i])
		}
	}
	if len(r.pods) != 3 || len(r.revisions) == 0 {
		t.Fatalf("%d recorded pods, %d revisions", len(r.pods), len(r.revisions))
	}
	return r
}

// put stores all objects as they are, at a time when they exist, and the nodes of the pods.
func (m *model) put(r *remains) {
	m.Helper()
	all := []client.Object{&r.set}
	for _, pod := range r.pods {
		all = append(all, pod)
		if m.node(pod.Spec.NodeName).Name == "" {
			m.addNode(pod.Spec.NodeName)
		}
	}
	for _, rev := range r.revisions {
		all = append(all, rev)
	}
	for _, o := range all {
		if at := o.GetCreationTimestamp(); at.After(m.Clock) {
			m.Clock = at.Add(time.Hour)
		}
		if err := m.Server.Put(o); err != nil {
			m.Fatal(err)
		}
	}
	m.Server.Requests()
}

// A set that OpenKruise has created or updated is continued without a write, and one that it is updating with the
// writes that are left.
func TestTakeover(t *testing.T) {
	for name, c := range map[string]struct {
		why, state, version string
		want                []string
	}{
		"created":           {"nothing is left to do", "1-created", "v1beta1", nil},
		"created, v1alpha1": {"references of the older version count", "1-created", "v1alpha1", nil},
		"updating": {
			why:     "the pods were recorded after the set: the status completes the rollout",
			state:   "2-updating",
			version: "v1beta1",
			want:    []string{"PATCH daemonsets/agent/status 200"},
		},
		"updated": {"nothing is left to do", "3-updated", "v1beta1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 0, daemonset.Options{})
			m.put(remainsOf(t, c.state, c.version))
			m.Reconcile()
			m.Reconcile()
			if diff := cmp.Diff(c.want, m.Server.Requests()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// A takeover in the middle of a surge deletes the old pod of each pair, and nothing else.
func TestTakeoverOfSurge(t *testing.T) {
	r := remainsOf(t, "3-updated", "v1beta1")
	r.set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{
		Type: v1beta1.StandardRollingUpdateType, MaxSurge: amount("1"), MaxUnavailable: amount("0"),
	}
	old := r.pods[0].DeepCopy()
	old.Name, old.UID = "agent-old", "old"
	old.CreationTimestamp.Time = old.CreationTimestamp.Add(-time.Hour)
	old.Labels[kruise.PodRevisionLabelKey] = "5564d79746"
	r.pods = append(r.pods, old)
	m := newModel(t, 0, daemonset.Options{})
	m.put(r)
	m.Still()
	var writes []string
	for _, request := range m.Server.Requests() {
		if strings.Contains(request, "pods/") {
			writes = append(writes, request)
		}
	}
	if diff := cmp.Diff([]string{"DELETE pods/agent-old 200"}, writes); diff != "" {
		t.Errorf("writes of pods (-want +got):\n%s", diff)
	}
}
