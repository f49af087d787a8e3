//go:build envtest

package podunavailablebudget_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/podunavailablebudget"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/test/podbench"
)

// The status follows pods and the replicas of two Deployments, at one write for each change and one read of a scale for
// each generation.
func TestSelector(t *testing.T) {
	b := start(t)
	one, sets := b.deployment("one", 5)
	two, others := b.deployment("two", 5)
	pods := slices.Concat(b.pods(5, owner(sets, "apps/v1", "ReplicaSet"), "one"),
		b.pods(5, owner(others, "apps/v1", "ReplicaSet"), "two"))
	of := b.budget("web", "25%")
	b.status(of, 10, 7, 3, 10)
	b.stamped("web", pods...)
	b.Still()
	b.Asked()

	b.ready(pods[0], corev1.ConditionFalse)
	b.status(of, 9, 7, 2, 10)
	b.Still()
	if asked := b.Asked(); len(asked) != 1 || count(asked, "PATCH podunavailablebudgets/web/status 200") != 1 {
		t.Errorf("a pod that gets unready costs %q", asked)
	}
	b.Gone(pods[0]) // deleted by force
	b.Still()
	b.status(of, 9, 7, 2, 10)
	if asked := b.Asked(); len(asked) != 0 {
		t.Errorf("a pod that was unavailable already costs %q", asked)
	}
	b.Gone(pods[1])
	b.status(of, 8, 7, 1, 10)

	b.Still()
	b.Asked()
	patch := client.MergeFrom(one.DeepCopy())
	one.Spec.Replicas = ptr.To[int32](0)
	if err := b.Client.Patch(t.Context(), one, patch); err != nil {
		t.Fatal(err)
	}
	b.status(of, 8, 3, 5, 5)
	b.Still()
	if asked := b.Asked(); count(asked, "GET deployments/one/scale 200") != 1 || count(asked, "GET") != 1 {
		t.Errorf("a scale-down costs %q", asked)
	}
	b.Gone(two)
	b.status(of, 8, 0, 8, 0)
	b.Still()
	if events := b.Events(of, pub.NoteNoPods); len(events) > 1 {
		t.Errorf("events %q", events)
	}
}

// A new ReplicaSet of the target brings its pods.
func TestTargetDeployment(t *testing.T) {
	b := start(t)
	d, old := b.deployment("web", 4)
	b.pods(2, owner(old, "apps/v1", "ReplicaSet"), "old")
	of := b.budget("web", "1", target("apps/v1beta1", "Deployment", "web")) // versions do not matter
	b.status(of, 2, 3, 0, 4)
	young := b.replicaSet(d, "web-2")
	fresh := b.pods(2, owner(young, "apps/v1", "ReplicaSet"), "new")
	b.status(of, 4, 3, 1, 4)
	b.stamped("web", fresh...)
	b.Gone(d)
	b.status(of, 0, 0, 0, 0)
}

// A CloneSet is watched by its metadata, and has a scale.
func TestTargetCloneSet(t *testing.T) {
	b := start(t)
	set := b.cloneSet("web", 3)
	b.pods(3, owner(set, "apps.kruise.io/v1beta1", "CloneSet"), "web")
	b.pods(1, nil, "other")
	of := b.budget("web", "1", target("apps.kruise.io/v1alpha1", "CloneSet", "web"))
	b.status(of, 3, 2, 1, 3)
	patch := client.MergeFrom(set.DeepCopy())
	set.Spec.Replicas = ptr.To[int32](10)
	if err := b.Client.Patch(t.Context(), set, patch); err != nil {
		t.Fatal(err)
	}
	b.status(of, 3, 9, 0, 10)
}

// Replicas that cannot be read are reported, once: a DaemonSet has no scale subresource.
func TestUnknownReplicas(t *testing.T) {
	b := start(t)
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	ds.Spec.Selector, ds.Spec.Template = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, template()
	b.create(ds)
	b.pods(1, owner(ds, "apps/v1", "DaemonSet"), "web")
	of := b.budget("web", "1", target("apps/v1", "DaemonSet", "web"))
	b.status(of, 1, 0, 1, -1)
	b.Until(func() error {
		if events := b.Events(of, pub.NoteUnknownReplicas); len(events) != 1 {
			return fmt.Errorf("events %q", events)
		}
		return nil
	})
	b.Still()
	if asked := b.Asked(); count(asked, "GET") > 4 {
		t.Errorf("it costs %q", asked)
	}
}

// A budget of groups counts these, and a change of a pod's group or of the size of groups is observed.
func TestGroups(t *testing.T) {
	b := start(t)
	set := b.cloneSet("web", 6)
	pods := b.pods(6, owner(set, "apps.kruise.io/v1beta1", "CloneSet"), "web")
	name := func(pod *corev1.Pod, group string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"group":%q}}}`, group)
		if err := b.Client.Patch(b.Context(), pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	for i, pod := range pods {
		name(pod, fmt.Sprint("g", i/2))
	}
	of := b.budget("web", "1", func(of *budget) {
		of.Spec.PodGroupPolicy = &policyv1beta1.PodGroupPolicy{GroupLabelKey: "group", GroupSize: 2}
	})
	groups := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, of.Status.UnavailablePodGroups); diff != "" {
			t.Errorf("unavailable groups (-want +got):\n%s", diff)
		}
	}
	b.status(of, 3, 2, 1, 3)
	groups()
	b.ready(pods[3], corev1.ConditionFalse)
	b.status(of, 2, 2, 0, 3)
	groups("g1")
	b.ready(pods[2], corev1.ConditionFalse)
	b.Still()
	b.status(of, 2, 2, 0, 3)
	groups("g1")
	name(pods[0], "g2")
	b.status(of, 1, 2, 0, 3)
	groups("g0", "g1")
	of.Spec.PodGroupPolicy.GroupSize = 1
	if err := b.Client.Update(b.Context(), of); err != nil {
		t.Fatal(err)
	}
	b.status(of, 2, 5, 0, 6)
	groups("g1")
}

// What admission spends between the read and the write of a reconcile stays.
func TestSpendingMeanwhile(t *testing.T) {
	b := newBench(t)
	var armed atomic.Int32
	var of *budget
	spend := func() error {
		var is budget
		if err := b.Client.Get(b.Context(), client.ObjectKeyFromObject(of), &is); err != nil {
			return err
		}
		stored := is.DeepCopy()
		after, _ := pub.Read(&is)
		after = after.Spend(pub.Record{Pod: "web-0", Time: metav1.Now()})
		stored.Status = after.Status
		return b.Client.Status().Update(b.Context(), stored)
	}
	b.reconcile(podunavailablebudget.Options{}, func(c client.WithWatch) client.Client {
		return podbench.Writes(c, func(what string, write func() error) error {
			if what == "status/web" && armed.CompareAndSwap(1, 0) {
				if err := spend(); err != nil {
					return err
				}
			}
			return write()
		})
	})
	set := b.cloneSet("web", 4)
	pods := b.pods(4, owner(set, "apps.kruise.io/v1beta1", "CloneSet"), "web")
	of = b.budget("web", "2")
	b.status(of, 4, 2, 2, 4)
	b.Still()
	b.Asked()
	armed.Store(1)
	b.ready(pods[3], corev1.ConditionFalse)
	b.status(of, 2, 2, 0, 4)
	if _, ok := of.Status.DisruptedPods["web-0"]; !ok {
		t.Errorf("the record is lost: %v", of.Status)
	}
	if asked := b.Asked(); count(asked, "PATCH podunavailablebudgets/web/status 409") != 1 {
		t.Errorf("a conflict costs %q", asked)
	}
}

// A cluster without a budget has no informers of workloads; a reconciler that starts again where all is done writes
// nothing.
func TestIdle(t *testing.T) {
	b := newBench(t)
	stop := b.reconcile(podunavailablebudget.Options{}, plain)
	set := b.cloneSet("web", 2)
	b.pods(2, owner(set, "apps.kruise.io/v1beta1", "CloneSet"), "web")
	b.Still()
	if watched := b.Watched(); slices.Contains(watched, "deployments") || slices.Contains(watched, "replicasets") {
		t.Errorf("without a budget the reconciler watches %q", watched)
	}
	of := b.budget("web", "1")
	b.status(of, 2, 1, 1, 2)
	b.Still()
	stop()
	b.Asked()
	b.reconcile(podunavailablebudget.Options{}, plain)
	b.Still()
	if asked := b.Asked(); count(asked, "PATCH") > 0 || count(asked, "POST") > 0 {
		t.Errorf("a start costs %q", asked)
	}
}

// The rights of the manager are enough.
func TestRights(t *testing.T) {
	b := newBench(t)
	text, err := os.ReadFile("../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if strings.Contains(document, "kind: ClusterRole\n") {
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	role.Name, role.ResourceVersion = b.Namespace, ""
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: b.Namespace}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.Namespace}, Subjects: []rbacv1.Subject{user},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	for _, o := range []client.Object{&role, binding} {
		if err := b.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Client.Delete(context.Background(), o) })
	}
	b.Config = rest.CopyConfig(b.Config)
	b.Config.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: []string{"system:authenticated"}}
	b.reconcile(podunavailablebudget.Options{}, plain)
	_, rs := b.deployment("web", 2)
	pods := b.pods(2, owner(rs, "apps/v1", "ReplicaSet"), "web")
	of := b.budget("web", "1")
	b.status(of, 2, 1, 1, 2)
	b.stamped("web", pods...)
}
