//go:build envtest

package process

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
)

func inShop(name string, changes ...func(*metav1.ObjectMeta)) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: name}
	for _, change := range changes {
		change(&m)
	}
	return m
}

// workloads are writes of workloads that a UnitedDeployment divides pods between, and of others.
func (g *policyGround) workloads(t *testing.T) map[string]attempt {
	t.Helper()
	united := controlledBy("apps.kruise.io/v1alpha1", "UnitedDeployment")
	mine := unstructuredOf("CloneSet", inShop("mine", united), cloneSetSpec())
	theirs := unstructuredOf("CloneSet", inShop("theirs"), cloneSetSpec())
	stateful := unstructuredOf("StatefulSet", inShop("theirs"), cloneSetSpec())
	web := podOf(metav1.ObjectMeta{Labels: map[string]string{"app": "web"}})
	deployment := &appsv1.Deployment{ObjectMeta: inShop("mine", united)}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: web.Labels}
	deployment.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: web.Labels}, Spec: web.Spec}
	g.create(t, deployment, mine, theirs, stateful, unstructuredOf("CloneSet", inShop("old", united), cloneSetSpec()))
	const subset = "that a UnitedDeployment controls"
	const image = `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"other:2"}]`
	return map[string]attempt{
		"a subset: the UnitedDeployment has it": {
			g.creates(unstructuredOf("CloneSet", inShop("a", united), cloneSetSpec())), "",
		},
		"a template: the UnitedDeployment changes it": {g.patches(mine, jsonPatch, image), ""},
		"a subset goes: the UnitedDeployment has it no more": {
			g.deletes(unstructuredOf("CloneSet", inShop("old"), nil)), "",
		},
		"a Deployment as a whole: a list cannot be applied": {g.updates(deployment), ""},
		"a CloneSet as a whole: a list cannot be applied": {
			g.updates(unstructuredOf("CloneSet", inShop("mine", united), cloneSetSpec())), "",
		},
		"names of pods: the pods are gone": {
			g.patches(theirs, merge, `{"spec":{"scaleStrategy":{"podsToDelete":[]}}}`), "",
		},
		"a CloneSet: its pods could run as any account": {
			g.creates(unstructuredOf("CloneSet", inShop("b"), cloneSetSpec())), subset,
		},
		"a StatefulSet: its pods could run as any account": {
			g.creates(unstructuredOf("StatefulSet", inShop("b"), cloneSetSpec())), subset,
		},
		"another's template: its pods would run something else": {g.patches(theirs, jsonPatch, image), subset},
		"another's replicas: its pods would be deleted": {
			g.patches(theirs, merge, `{"spec":{"replicas":0}}`), subset,
		},
		"another's owner: it would seem to be a subset": {
			g.patches(theirs, merge, ownerPatch(ofOurs, "UnitedDeployment", true)), subset,
		},
		"another's goes: its pods would go":                {g.deletes(theirs), subset},
		"another's set: its pods would run something else": {g.patches(stateful, jsonPatch, image), subset},
		"another's set, same: it is rewritten in the stored version": {
			g.patches(stateful, merge, `{"metadata":{"annotations":{"a":"b"}}}`), "",
		},
	}
}

// jobs are writes of what AdvancedCronJobs create, and of templates.
func (g *policyGround) jobs(t *testing.T) map[string]attempt {
	t.Helper()
	template := corev1.PodTemplateSpec{Spec: podOf(metav1.ObjectMeta{}).Spec}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	cron := controlledBy(ofOurs, "AdvancedCronJob")
	job := func(m metav1.ObjectMeta) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: m, Spec: batchv1.JobSpec{Template: template}}
	}
	g.create(t, job(inShop("theirs")), job(inShop("old", cron)))
	broadcast := map[string]any{"template": map[string]any{"spec": map[string]any{
		"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "main:1"}},
	}}}
	pulls := map[string]any{"images": []any{"main:1"}, "completionPolicy": map[string]any{"type": "Always"}}
	const tick = "that an AdvancedCronJob controls"
	return map[string]attempt{
		"at a tick: the AdvancedCronJob creates it": {g.creates(job(inShop("a", cron))), ""},
		"at a tick, on nodes: the AdvancedCronJob creates it": {
			g.creates(unstructuredOf("BroadcastJob", inShop("a", cron), broadcast)), "",
		},
		"at a tick, of images: the AdvancedCronJob creates it": {
			g.creates(unstructuredOf("ImageListPullJob", inShop("a", cron), pulls)), "",
		},
		"beyond the limit: the history is full": {g.deletes(job(inShop("old"))), ""},
		"a Job, as a dry run: admission validates templates by it": {
			g.creates(job(inShop("b")), runtimeclient.DryRunAll), "",
		},
		"a PodTemplate, dry: admission validates templates by it": {
			g.creates(&corev1.PodTemplate{ObjectMeta: inShop("b"), Template: template}, runtimeclient.DryRunAll), "",
		},
		"a Job: its pods could run as any account": {g.creates(job(inShop("b"))), tick},
		"a Job of a CronJob: it is not ours": {
			g.creates(job(inShop("b", controlledBy("batch/v1", "CronJob")))), tick,
		},
		"another's Job goes: it would not end": {g.deletes(job(inShop("theirs"))), tick},
		"a BroadcastJob: its pods could run as any account": {
			g.creates(unstructuredOf("BroadcastJob", inShop("b"), broadcast)), tick,
		},
		"an ImageListPullJob: nodes would pull anything": {
			g.creates(unstructuredOf("ImageListPullJob", inShop("b"), pulls)), tick,
		},
		"a PodTemplate is stored: nothing reads it": {
			g.creates(&corev1.PodTemplate{ObjectMeta: inShop("b"), Template: template}), "in dry runs alone",
		},
	}
}

// dependents are writes of revisions and claims.
func (g *policyGround) dependents(t *testing.T) map[string]attempt {
	t.Helper()
	revision := func(m metav1.ObjectMeta) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: m, Data: runtime.RawExtension{Raw: []byte(`{}`)}, Revision: 1}
	}
	claim := func(m metav1.ObjectMeta) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: m, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse("1Gi"),
			}},
		}}
	}
	set, builtin := controlledBy(ofOurs, "CloneSet"), controlledBy("apps/v1", "DaemonSet")
	custom, ofSidecarSet := revision(inShop("custom")), revision(inShop("new", controlledBy(ofOurs, "SidecarSet")))
	custom.Namespace, ofSidecarSet.Namespace = "kruise-system", "kruise-system"
	custom.Labels = map[string]string{"kruise.io/sidecarset-name": "a"}
	g.create(t, revision(inShop("mine", set)), revision(inShop("old", set)), revision(inShop("theirs", builtin)),
		revision(inShop("orphan")), custom, claim(inShop("data-web-a", set)), claim(inShop("data-web-b", set)),
		claim(inShop("data-web-0")), claim(inShop("data-web-9")), claim(inShop("data-db-0", builtin)))
	const handOver = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"web-b","uid":"b","controller":true},` +
		`{"$patch":"delete","uid":"of-CloneSet"}]}}`
	const ours, others = "that a kind of apps.kruise.io controls", "of other owners"
	return map[string]attempt{
		"a revision: the template is new":      {g.creates(revision(inShop("new", set))), ""},
		"of a SidecarSet: its template is new": {g.creates(ofSidecarSet), ""},
		"the newest revision: the template is an old one": {
			g.patches(revision(inShop("mine")), merge, `{"revision":2,"metadata":{"labels":{"a":"b"}}}`), "",
		},
		"adoption: nothing controls it": {
			g.patches(revision(inShop("orphan")), strategic, ownerPatch(ofOurs, "CloneSet", true)), "",
		},
		"a surplus revision: the history is full":                      {g.deletes(revision(inShop("old"))), ""},
		"a custom version goes: the history of the SidecarSet is full": {g.deletes(custom), ""},
		"a revision of nothing: no rollback of ours reads it":          {g.creates(revision(inShop("b"))), ours},
		"a revision of others: a rollback would run it":                {g.creates(revision(inShop("b", builtin))), ours},
		"another's newest: a rollback would run it": {
			g.patches(revision(inShop("theirs")), merge, `{"revision":9}`), others,
		},
		"another's revision goes: no rollback would be left": {g.deletes(revision(inShop("theirs"))), ours},
		"a claim of a CloneSet: its pod waits for it":        {g.creates(claim(inShop("data-web-c", set))), ""},
		"a claim of a StatefulSet: it outlasts the set":      {g.creates(claim(inShop("data-web-1"))), ""},
		"a claim is handed over: it goes with its pod": {
			g.patches(claim(inShop("data-web-b")), strategic, handOver), "",
		},
		"a claim of a pod: the policy of the set deletes it": {
			g.patches(claim(inShop("data-web-0")), strategic, ownerPatch("v1", "Pod", false)), "",
		},
		"a claim goes: its pod is gone":          {g.deletes(claim(inShop("data-web-a"))), ""},
		"a claim of others: data would be lost":  {g.deletes(claim(inShop("data-db-0"))), ours},
		"a claim of nothing: data would be lost": {g.deletes(claim(inShop("data-web-9"))), ours},
		"a claim's other owner: data would go with it": {
			g.patches(claim(inShop("data-db-0")), strategic, ownerPatch("v1", "ConfigMap", false)), others,
		},
		"a claim's finalizer: it protects data in use": {
			g.patches(claim(inShop("data-db-0")), merge, `{"metadata":{"finalizers":["a.b/c"]}}`), "finalizers",
		},
	}
}

func unstructuredOf(kind string, meta metav1.ObjectMeta, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(spec)}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: kind})
	o.SetNamespace(meta.Namespace)
	o.SetName(meta.Name)
	o.SetOwnerReferences(meta.OwnerReferences)
	return o
}

// cloneSetSpec is also that of a StatefulSet.
func cloneSetSpec() map[string]any {
	labels := map[string]any{"app": "web"}
	return map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "main:1"}}},
		},
	}
}

// ownerPatch adds an owner reference.
func ownerPatch(apiVersion, kind string, controller bool) string {
	return fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":"a","uid":"b","controller":%t}]}}`,
		apiVersion, kind, controller)
}
