//go:build envtest

package process

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/write"
)

// testNative writes what the reconciler of StatefulSets and DaemonSets of apps writes: refused without the rights of
// config/native, and allowed with them.
func (g *policyGround) testNative(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: inShop("native")}
	labels := map[string]string{"app": "native"}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template = corev1.PodTemplateSpec{Spec: podOf(inShop("a")).Spec}
	set.Spec.Template.Labels = labels
	pod := podOf(inShop("native-0"), controlledBy("apps/v1", "StatefulSet"), started())
	other := podOf(inShop("native-1"), controlledBy("batch/v1", "Job"), started())
	daemons := &appsv1.DaemonSet{ObjectMeta: inShop("native")}
	daemons.Spec.Selector, daemons.Spec.Template = set.Spec.Selector, set.Spec.Template
	stuck := podOf(inShop("native-3"), controlledBy("apps/v1", "StatefulSet"), started())
	proxy := podOf(inShop("proxy"), controlledBy("apps/v1", "DaemonSet"), started())
	proxy.Namespace = "kube-system"
	g.create(t, set, daemons, pod, other, stuck, proxy)
	deployment, replicas := deployed()
	running, _ := deployed()
	running.Name, running.Spec.Paused = "running", false
	g.create(t, deployment, running, replicas)
	const (
		status = `{"metadata":{"annotations":{"kruisekit.dev/rollout-status":"{}"}}}`
		image  = `{"spec":{"containers":[{"name":"main","image":"other:2"}]}}`
		subset = "that a UnitedDeployment controls"
		alone  = "a workload of apps.kruise.io controls"
		// release is how a hold ends.
		release = `{"metadata":{"annotations":{"kruisekit.dev/rollout-hold":null}},"spec":{"paused":false}}`
		command = `{"spec":{"template":{"spec":{"containers":[{"name":"main","command":["sh"]}]}}}}`
		root    = `{"spec":{"template":{"spec":{"hostPID":true}}}}`
	)
	try(t, map[string]attempt{
		"status without rights: the gate is off": {g.patches(set, merge, status), subset},
		"image without rights: the gate is off":  {g.patches(pod, strategic, image), alone},
	})
	if _, err := g.Kubectl(t.Context(), "apply", "--server-side", "-k", "../../../config/native"); err != nil {
		t.Fatal(err)
	}
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = g.patches(pod, strategic, image)(ctx)
			return last == nil, nil
		}); err != nil {
		t.Fatalf("an image with rights: %v", last)
	}
	pods := 10
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			pods++ // a patch that changes nothing is admitted
			return g.patches(replicas, merge, fmt.Sprintf(`{"spec":{"replicas":%d}}`, pods))(ctx) != nil, nil
		}); err != nil {
		t.Fatalf("the policy of ReplicaSets: %v", err)
	}
	now := driver.Eviction(&write.Write{Object: stuck})
	now.DeleteOptions.GracePeriodSeconds = ptr.To(int64(0))
	byName := driver.Eviction(&write.Write{Object: stuck})
	byName.DeleteOptions = nil
	try(t, map[string]attempt{
		"status of a DaemonSet: the rollout goes on": {g.patches(daemons, merge, status), ""},
		"a DaemonSet: it would be root on all nodes": {g.patches(daemons, strategic, root), subset},
		"a DaemonSet, with status: it would be root on all nodes": {
			g.patches(daemons, strategic, status[:len(status)-1]+","+root[1:]), subset,
		},
		"a label of a DaemonSet: its users own it": {
			g.patches(daemons, merge, `{"metadata":{"labels":{"a":"b"}}}`), subset,
		},
		"a StatefulSet: its pods would run something else": {g.patches(set, strategic, root), subset},
		"eviction: the pod cannot change in place":         {g.evicts(driver.Eviction(&write.Write{Object: stuck})), ""},
		"eviction in kube-system: the cluster would lose it": {
			g.evicts(driver.Eviction(&write.Write{Object: proxy})), "runs in this",
		},
		"eviction at once: the pod has time to end":    {g.evicts(now), "grace period of the pod"},
		"eviction by name: the pod may be another one": {g.evicts(byName), "by its UID"},
		"status: the rollout goes on":                  {g.patches(set, merge, status), ""},
		"resize: the template asks for it":             {g.patchesPart("resize", pod, resize("150m")), ""},
		"another annotation: its users own it": {
			g.patches(set, merge, `{"metadata":{"annotations":{"a":"b"}}}`), subset,
		},
		"status with more: its pods would be deleted": {
			g.patches(set, merge, status[:len(status)-1]+`,"spec":{"replicas":0}}`), subset,
		},
		"of a Job: nothing asks for it": {g.patches(other, strategic, image), alone},
		"a pod of the set: its controller creates it": {
			g.creates(podOf(inShop("native-2"), controlledBy("apps/v1", "StatefulSet"))), alone,
		},
		"the hold ends: all pods run the change": {g.patches(deployment, merge, release), ""},
		"the hold ends, with more: its pods would run something else": {
			g.patches(deployment, merge, release[:len(release)-2]+`,"replicas":9}}`), subset,
		},
		"a pause: its users decide": {g.patches(running, merge, `{"spec":{"paused":true}}`), subset},
		"a template of a ReplicaSet: all pods run it": {
			g.patches(replicas, strategic, `{"spec":{"template":`+image+`}}`), "",
		},
		"a root of a ReplicaSet: it would be root": {
			g.patches(replicas, strategic, root), "images, resources and metadata",
		},
		"more pods of a ReplicaSet: its Deployment scales it": {
			g.patches(replicas, merge, `{"spec":{"replicas":5}}`), "images, res",
		},
		"a command of a ReplicaSet: it would run it": {
			g.patches(replicas, strategic, command), "images, resources and metadata",
		},
		"the history: a user may undo":              {g.creates(history(replicas, 0, "Deployment")), ""},
		"a ReplicaSet with pods: it would run them": {g.creates(history(replicas, 1, "Deployment")), "without pods"},
		"a ReplicaSet of other kind: nothing asks for it": {
			g.creates(history(replicas, 0, "Other")), "that a Deployment controls",
		},
		"a ReplicaSet goes: its pods would go": {g.deletes(replicas), "without pods"},
		"a revision of a Deployment: pods run it": {
			g.creates(&appsv1.ControllerRevision{
				ObjectMeta: named(inShop("revision"), controlledBy("apps/v1", "Deployment")), Revision: 1,
				Data: runtime.RawExtension{Raw: []byte("{}")},
			}), "",
		},
		"the set goes: its pods would go": {g.deletes(set), subset},
		"a finalizer of a pod: others rely on it": {
			g.patches(pod, merge, `{"metadata":{"finalizers":["a.b/c"]}}`), "must not change finalizers",
		},
	})
}

// deployed is a held Deployment, and its ReplicaSet with pods.
func deployed() (*appsv1.Deployment, *appsv1.ReplicaSet) {
	labels := map[string]string{"app": "deployed"}
	d := &appsv1.Deployment{ObjectMeta: inShop("deployed")}
	d.Annotations = map[string]string{"kruisekit.dev/rollout": "{}", "kruisekit.dev/rollout-hold": "1"}
	d.Spec.Selector, d.Spec.Paused = &metav1.LabelSelector{MatchLabels: labels}, true
	d.Spec.Template = corev1.PodTemplateSpec{Spec: podOf(inShop("a")).Spec}
	d.Spec.Template.Labels = labels
	set := &appsv1.ReplicaSet{ObjectMeta: named(inShop("deployed-1"), controlledBy("apps/v1", "Deployment"))}
	set.Spec.Selector, set.Spec.Template, set.Spec.Replicas = d.Spec.Selector, d.Spec.Template, ptr.To(int32(3))
	return d, set
}

func named(m metav1.ObjectMeta, change func(*metav1.ObjectMeta)) metav1.ObjectMeta {
	change(&m)
	return m
}

// history is another ReplicaSet with the template.
func history(of *appsv1.ReplicaSet, replicas int32, kind string) *appsv1.ReplicaSet {
	meta := inShop(strings.ToLower(kind) + "-" + strconv.Itoa(int(replicas)))
	set := &appsv1.ReplicaSet{ObjectMeta: named(meta, controlledBy("apps/v1", kind))}
	set.Spec = *of.Spec.DeepCopy()
	set.Spec.Replicas = &replicas
	return set
}

// evicts sends an eviction, as the manager.
func (g *policyGround) evicts(e *policyv1.Eviction) func(context.Context) error {
	return func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
		return g.manager.SubResource("eviction").Create(ctx, pod, e)
	}
}
