package daemonset_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// twin stores a revision that holds the template of the set with a default written out, as another version of a library
// encodes it, and moves the first pods to it.
func (m *model) twin(hash string, number int64, pods int) {
	m.Helper()
	revisions := m.revisions()
	twin := revisions[len(revisions)-1].DeepCopy()
	twin.Name, twin.UID, twin.ResourceVersion, twin.Revision = "agent-twin", "twin", "", number
	twin.Labels[kruise.PodRevisionLabelKey], twin.Labels[kruise.RevisionHashLabelKey] = hash, hash
	data := strings.Replace(string(twin.Data.Raw), `"spec":{"containers"`,
		`"spec":{"dnsPolicy":"ClusterFirst","containers"`, 1)
	if data == string(twin.Data.Raw) {
		m.Fatalf("the data is %s", data)
	}
	twin.Data.Raw = []byte(data)
	if err := m.Server.Put(twin); err != nil {
		m.Fatal(err)
	}
	all := m.pods()
	for i := range all[:pods] {
		m.edit(&all[i], `{"metadata":{"labels":{"`+kruise.PodRevisionLabelKey+`":"`+hash+`"}}}`)
	}
	m.Server.Requests()
}

// revisions returns those that are stored, the oldest first.
func (m *model) revisions() []appsv1.ControllerRevision {
	m.Helper()
	var list appsv1.ControllerRevisionList
	if err := m.Server.List(m.Context(), &list, client.InNamespace("shop")); err != nil {
		m.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items
}

// Pods of a revision that holds the template under another name are not updated: they get the hash of the update
// revision. The other revision goes with the limit.
func TestEqualRevisions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.DaemonSet)
		number int64
	}{
		"standard, older":       {func(*v1beta1.DaemonSet) {}, 0},
		"standard, newer":       {func(*v1beta1.DaemonSet) {}, 7},
		"in place":              {inPlace, 0},
		"no history":            {func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = ptr.To[int32](0) }, 0},
		"updates are paused":    {paused(true), 0},
		"a hook before the end": {hooked, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 3, daemonset.Options{})
			set := m.create(c.change)
			m.eventually(set, settled(3))
			m.idle()
			before := m.pods()
			m.twin("twin", c.number, 2)
			m.eventually(set, settled(3))
			m.Still()
			requests := m.Server.Requests()
			want := []string{"PATCH pods/" + before[0].Name + " 200", "PATCH pods/" + before[1].Name + " 200"}
			if name == "no history" {
				want = append(want, "DELETE controllerrevisions/agent-twin 200")
			}
			slices.Sort(want)
			slices.Sort(requests)
			if c.number > 1 {
				// the number is raised
				requests = slices.DeleteFunc(requests, func(r string) bool {
					return strings.HasPrefix(r, "PATCH controllerrevisions/")
				})
			}
			if diff := cmp.Diff(want, requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			for i, pod := range m.pods() {
				if pod.UID != before[i].UID ||
					pod.Labels[kruise.PodRevisionLabelKey] != before[i].Labels[kruise.PodRevisionLabelKey] {
					t.Errorf("pod %s has revision %s, want %s as before",
						pod.Name, pod.Labels[kruise.PodRevisionLabelKey], before[i].Labels[kruise.PodRevisionLabelKey])
				}
			}
			m.idle()
		})
	}
}

// A revision of which a pod could not be moved stays: without it the pod would be recreated.
func TestEqualRevisionRefused(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create()
	m.eventually(set, settled(2))
	before := m.pods()
	m.twin("twin", 0, 2)
	m.restart(interceptor.NewClient(m.Server, interceptor.Funcs{
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption,
		) error {
			if o.GetName() == before[0].Name {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("a policy"))
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	}))
	m.Reconcile()
	m.Reconcile()
	if n := len(m.revisions()); n != 2 {
		t.Errorf("%d revisions while a pod has the other one, want 2", n)
	}
	m.restart(m.Server)
	m.becomes(set, "n1:1 n2:1")
	if diff := cmp.Diff(uids(before), uids(m.pods())); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
}

// A label that two revisions have, one of them of another template, says nothing about pods.
func TestEqualRevisionWithForeignHash(t *testing.T) {
	m := newModel(t, 2, daemonset.Options{})
	set := m.create(partition("1"))
	m.eventually(set, settled(2))
	m.change(set, image("agent:2"))
	m.becomes(set, "n1:1 n2:2")
	m.twin(m.on("n1").Labels[kruise.PodRevisionLabelKey], 0, 0)
	m.Still()
	m.change(set, partition("0"))
	m.becomes(set, "n1:2 n2:2")
}
