//go:build envtest

package uniteddeployment_test

import (
	"fmt"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

func TestMain(m *testing.M) { os.Exit(cluster.MainAtOnce(m, 8)) }

// onServer are the definitions of the kind and its workloads.
func onServer() cluster.Options {
	const bases = "../../config/crd/bases/apps.kruise.io_"
	return cluster.Options{CRDDirs: []string{
		bases + "uniteddeployments.yaml", bases + "clonesets.yaml", bases + "statefulsets.yaml",
	}}
}

// bench runs the reconciler on an API server.
func bench(t *testing.T) *podbench.Bench {
	t.Helper()
	kit := podbench.New(t, onServer())
	run(kit)
	return kit
}

// run runs the reconciler.
func run(kit *podbench.Bench) (stop func()) {
	kit.Helper()
	return kit.Run(func(mgr ctrl.Manager, c client.WithWatch) error {
		r, err := uniteddeployment.New(c, uniteddeployment.Options{})
		if err != nil {
			return err
		}
		return r.SetupWithManager(kit.Context(), mgr, controller.Options{MaxConcurrentReconciles: 2})
	})
}

// on is an object of two zones for a namespace of an API server.
func on(namespace string, changes ...change) *v1beta1.UnitedDeployment {
	u := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	labels := map[string]string{"app": "web"}
	u.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	t := &v1beta1.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	t.Spec.Selector = u.Spec.Selector
	t.Spec.Template.Labels = labels
	t.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "web:1", Env: []corev1.EnvVar{{Name: "OLD", Value: "1"}},
	}}
	u.Spec.Template.CloneSetTemplate = t
	topology("a", "b")(u)
	for _, change := range append([]change{scaled(4)}, changes...) {
		change(u)
	}
	return u
}

// selected gives the templates the selectors that their schema requires.
func selected(u *v1beta1.UnitedDeployment) {
	if t := u.Spec.Template.AdvancedStatefulSetTemplate; t != nil {
		t.Spec.Selector = u.Spec.Selector
	}
	if t := u.Spec.Template.CloneSetTemplate; t != nil {
		t.Spec.Selector = u.Spec.Selector
	}
}

func childrenOn(kit *podbench.Bench, u *v1beta1.UnitedDeployment) map[string]*subsets.Child {
	kit.Helper()
	all := map[string]*subsets.Child{}
	for _, kind := range subsets.Kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := kit.Client.List(kit.Context(), list, client.InNamespace(kit.Namespace)); err != nil {
			kit.Fatal(err)
		}
		for i := range list.Items {
			if owned.Controls(u, &list.Items[i]) {
				c := subsets.Observe(kind, &list.Items[i])
				all[c.Subset] = c
			}
		}
	}
	return all
}

func containerOf(c *subsets.Child) map[string]any {
	all, _, _ := unstructured.NestedSlice(c.Object.Object, "spec", "template", "spec", "containers")
	return all[0].(map[string]any)
}

// The API server accepts the workloads of all kinds as they are applied, removes what the template loses, keeps the
// fields of others, and an object at rest asks for nothing.
func TestKindsOnServer(t *testing.T) {
	for _, kind := range []string{"CloneSet", "Advanced", "StatefulSet", "Deployment"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			kit := bench(t)
			u := on(kit.Namespace, of(kind), selected)
			if err := kit.Client.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			have := func(image string, replicas int32) func() error {
				return func() error {
					if err := kit.Look(u); err != nil {
						return err
					}
					all := childrenOn(kit, u)
					for _, subset := range []string{"a", "b"} {
						if c := all[subset]; c == nil || c.Replicas != replicas || containerOf(c)["image"] != image ||
							c.Revision != u.Status.UpdatedRevision {
							return fmt.Errorf("subset %s is %+v, status %+v", subset, c, u.Status)
						}
					}
					return nil
				}
			}
			kit.Until(have("web:1", 2))
			kit.Still()
			asked := kit.Asked()
			if n := len(requests.About(asked, "PATCH")) + len(requests.About(asked, "POST")); n > 6 {
				t.Errorf("a creation costs %q", asked)
			}
			c := childrenOn(kit, u)["a"].Object.DeepCopy()
			patch := client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"labels":{"team":"shop"}},"spec":{"revisionHistoryLimit":7}}`))
			if err := kit.Client.Patch(t.Context(), c, patch); err != nil {
				t.Fatal(err)
			}
			kit.Still()
			if asked := kit.Asked(); len(asked) > 0 {
				t.Errorf("a field of others asks for %q", asked)
			}
			before := u.DeepCopy()
			image("web:2")(u)
			podsOf(u).Spec.Containers[0].Env = nil
			if err := kit.Client.Patch(t.Context(), u, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			kit.Until(have("web:2", 2))
			kit.Still()
			a := childrenOn(kit, u)["a"]
			if env, is := containerOf(a)["env"]; is || a.Object.GetLabels()["team"] != "shop" {
				t.Errorf("env %v, labels %v", env, a.Object.GetLabels())
			}
			kit.Asked()
			if err := kit.Client.Delete(t.Context(), a.Object); err != nil {
				t.Fatal(err)
			}
			kit.Until(have("web:2", 2))
		})
	}
}

// The workloads that another program made for the object become the reconciler's own: what the template loses is
// removed from them.
func TestInheritOnServer(t *testing.T) {
	t.Parallel()
	kit := bench(t)
	u := on(kit.Namespace, of("Deployment"), topology("a"))
	template := u.Spec.Template
	u.Spec.Template = v1beta1.SubsetTemplate{} // nothing can be done with that, so that the workload is there first
	if err := kit.Client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	kit.Until(func() error {
		if err := kit.Look(u); err != nil || condition(u, v1beta1.SubsetFailure) == nil {
			return fmt.Errorf("no failure yet: %w", err)
		}
		return nil
	})
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: kit.Namespace, Name: "web-a-xxxxx", Labels: map[string]string{
			"app": "web", kruise.SubSetNameLabelKey: "a", kruise.ControllerRevisionHashLabelKey: "web-1",
		},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(u, v1beta1.GroupVersion.WithKind("UnitedDeployment")),
		},
	}, Spec: *template.DeploymentTemplate.Spec.DeepCopy()}
	made.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{
		"app": "web", kruise.SubSetNameLabelKey: "a",
	}}
	made.Spec.Template.Labels = made.Labels
	before := u.DeepCopy()
	u.Spec.Template = template
	image("web:2")(u)
	podsOf(u).Spec.Containers[0].Env = nil
	if err := kit.Client.Create(t.Context(), made, client.FieldOwner("manager")); err != nil {
		t.Fatal(err)
	}
	kit.Still() // the cache has the workload
	if err := kit.Client.Patch(t.Context(), u, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	kit.Until(func() error {
		if err := kit.Look(made); err != nil {
			return err
		}
		if c := made.Spec.Template.Spec.Containers[0]; c.Image != "web:2" || len(c.Env) > 0 {
			return fmt.Errorf("container %+v", c)
		}
		return nil
	})
	kit.Still()
}
