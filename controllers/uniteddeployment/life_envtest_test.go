//go:build envtest

package uniteddeployment_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/podbench"
	"github.com/kruisekit/kruisekit/test/requests"
)

// divided waits until the workloads of an object have replicas, as "a 2, b 1".
func divided(kit *podbench.Bench, u *v1beta1.UnitedDeployment, want string) {
	kit.Helper()
	kit.Until(func() error {
		all := childrenOn(kit, u)
		var parts []string
		for _, s := range []string{"a", "b", "c", "d"} {
			if c := all[s]; c != nil {
				parts = append(parts, fmt.Sprintf("%s %d", s, c.Replicas))
			}
		}
		if got := strings.Join(parts, ", "); got != want || len(all) != len(parts) {
			return fmt.Errorf("divided as %q of %d, want %q", got, len(all), want)
		}
		return nil
	})
}

// edit patches an object on the API server.
func edit(kit *podbench.Bench, u *v1beta1.UnitedDeployment, changes ...change) {
	kit.Helper()
	before := u.DeepCopy()
	for _, change := range changes {
		change(u)
	}
	if err := kit.Client.Patch(kit.Context(), u, client.MergeFrom(before)); err != nil {
		kit.Fatal(err)
	}
}

// reports writes the status of a workload, as its controller does.
func reports(kit *podbench.Bench, c *subsets.Child, ready int32) {
	kit.Helper()
	data, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": c.Object.GetGeneration(), "replicas": c.Replicas, "readyReplicas": ready,
		"availableReplicas": ready,
		"updatedReplicas":   c.Replicas, "updatedReadyReplicas": ready,
	}})
	if err != nil {
		kit.Fatal(err)
	}
	if err := kit.Client.Status().Patch(kit.Context(), c.Object.DeepCopy(),
		client.RawPatch(types.MergePatchType, data)); err != nil {
		kit.Fatal(err)
	}
}

// Subsets are added, renamed and removed, another kind replaces the workloads, and the scale subresource divides the
// replicas again.
func TestTopologyOnServer(t *testing.T) {
	t.Parallel()
	kit := bench(t)
	u := on(kit.Namespace)
	if err := kit.Client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	divided(kit, u, "a 2, b 2")
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 6}}
	if err := kit.Client.SubResource("scale").Update(t.Context(), u, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	divided(kit, u, "a 3, b 3")
	for _, c := range childrenOn(kit, u) {
		reports(kit, c, c.Replicas)
	}
	kit.Until(func() error {
		if err := kit.Client.SubResource("scale").Get(t.Context(), u, scale); err != nil {
			return err
		}
		if scale.Status.Replicas != 6 || scale.Status.Selector != "app=web" {
			return fmt.Errorf("scale %+v", scale.Status)
		}
		return nil
	})
	if err := kit.Look(u); err != nil {
		t.Fatal(err)
	}
	edit(kit, u, topology("a=1", "b", "c"))
	divided(kit, u, "a 1, b 3, c 2")
	edit(kit, u, topology("a=1", "d", "c"))
	divided(kit, u, "a 1, c 3, d 2")
	edit(kit, u, of("Deployment"), topology("a", "d"))
	divided(kit, u, "a 3, d 3")
	kit.Until(func() error {
		if err := kit.Look(u); err != nil {
			return err
		}
		if s := u.Status.SubsetStatuses; len(s) != 2 || s[0].Replicas != 3 || u.Status.ObservedGeneration != u.Generation {
			return fmt.Errorf("status %+v", u.Status)
		}
		return nil
	})
	kit.Still()
	kit.Asked()
	edit(kit, u, func(u *v1beta1.UnitedDeployment) { u.Labels = map[string]string{"team": "shop"} })
	kit.Still()
	if asked := kit.Asked(); len(asked) > 0 {
		t.Errorf("a label of the object asks for %q", asked)
	}
}

// A pod that finds no node moves the replicas, without another event and without a timer of the pass before.
func TestAdaptiveOnServer(t *testing.T) {
	t.Parallel()
	kit := bench(t)
	u := on(kit.Namespace, topology("a", "b"), adaptive(1, 3600, false))
	if err := kit.Client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	divided(kit, u, "a 4, b 0")
	a := childrenOn(kit, u)["a"]
	reports(kit, a, 3)
	kit.Still()
	pod := kit.Pod("stuck", func(pod *corev1.Pod) {
		pod.Spec.NodeName = ""
		pod.Labels = map[string]string{
			"app": "web", kruise.SubSetNameLabelKey: "a", kruise.ControllerRevisionHashLabelKey: a.Revision,
		}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(a.Object, a.Kind)}
	})
	kit.Status(pod, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}
	})
	divided(kit, u, "a 3, b 1")
	kit.Until(func() error {
		if err := kit.Look(u); err != nil {
			return err
		}
		s := u.Status.SubsetStatuses
		if len(s) != 2 || len(s[0].Conditions) != 1 || s[0].Conditions[0].Status != corev1.ConditionFalse {
			return fmt.Errorf("status %+v", u.Status)
		}
		return nil
	})
}

// Another process that takes over writes nothing, with a cache that keeps little of the workloads of others.
func TestRestartOnServer(t *testing.T) {
	t.Parallel()
	kit := podbench.New(t, onServer())
	lean := cache.ByObject{Transform: func(o any) (any, error) {
		if workload, is := o.(*unstructured.Unstructured); is {
			subsets.Lean(workload)
		}
		return cache.TransformStripManagedFields()(o)
	}}
	kit.Cache.ByObject = map[client.Object]cache.ByObject{&appsv1.Deployment{}: lean, &appsv1.StatefulSet{}: lean}
	stop := run(kit)
	var all []*v1beta1.UnitedDeployment
	for _, kind := range []string{"CloneSet", "Advanced", "StatefulSet", "Deployment"} {
		u := on(kit.Namespace, of(kind), selected)
		u.Name = strings.ToLower(kind)
		if err := kit.Client.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	for _, u := range all {
		divided(kit, u, "a 2, b 2")
	}
	kit.Still()
	stop()
	kit.Asked()
	run(kit)
	kit.Still()
	if writes := requests.About(kit.Asked(), "PATCH", "POST", "DELETE", "PUT"); len(writes) > 0 {
		t.Errorf("a new process asks %q", writes)
	}
	edit(kit, all[3], scaled(6))
	divided(kit, all[3], "a 3, b 3")
}

// With the policy of config/rbac the account of the manager writes the workloads of UnitedDeployments, and no others.
func TestManagersPolicyOnServer(t *testing.T) {
	t.Parallel()
	o := onServer()
	o.Scheme = podbench.Scheme(t)
	c := cluster.Start(t, o)
	if out, err := c.Kubectl(t.Context(), "apply", "-f", "../../config/rbac/policy.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kit := podbench.On(t, c, o.Scheme)
	kit.Config = rest.CopyConfig(kit.Config)
	kit.Config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kruise-system:kruise-manager", Groups: []string{"system:masters"},
	}
	manager, err := client.New(kit.Config, client.Options{Scheme: kit.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	other := func(name string) *appsv1.Deployment {
		u := on(kit.Namespace, of("Deployment"))
		o := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: kit.Namespace, Name: name}, Spec: u.Spec.Template.DeploymentTemplate.Spec,
		}
		o.Spec.Selector = u.Spec.Selector
		return o
	}
	kit.Until(func() error {
		if err := manager.Create(t.Context(), other("a")); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a Deployment of no UnitedDeployment: %w", err)
		}
		return nil
	})
	if err := manager.Create(t.Context(), other("b"), client.DryRunAll); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	theirs := other("theirs")
	if err := kit.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	for verb, err := range map[string]error{
		"patch": manager.Patch(t.Context(), theirs.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`))),
		"delete": manager.Delete(t.Context(), theirs.DeepCopy()),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s of a Deployment of another owner: %v", verb, err)
		}
	}
	run(kit)
	u := on(kit.Namespace, of("Deployment"))
	if err := kit.Client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	divided(kit, u, "a 2, b 2")
	edit(kit, u, topology("a"))
	divided(kit, u, "a 4")
	edit(kit, u, of("StatefulSet"))
	divided(kit, u, "a 4")
}
