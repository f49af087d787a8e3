//go:build envtest

package process

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	strategic = types.StrategicMergePatchType
	merge     = types.MergePatchType
	jsonPatch = types.JSONPatchType
	ofOurs    = "apps.kruise.io/v1beta1"
	withImage = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
)

// pods are writes of pods of a CloneSet, of a ReplicaSet, and of no workload.
func (g *policyGround) pods(t *testing.T) map[string]attempt {
	t.Helper()
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	web := podOf(at("web-1"), controlledBy(ofOurs, "CloneSet"), started())
	theirs := podOf(at("theirs-1"), controlledBy("apps/v1", "ReplicaSet"), started(), func(p *corev1.Pod) {
		p.Finalizers = []string{"theirs.io/kept"}
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1", Env: variables("IS_INJECTED")}}
		p.Spec.Containers = append(p.Spec.Containers,
			corev1.Container{Name: "proxy", Image: "proxy:1", Env: variables("IS_INJECTED")},
			corev1.Container{Name: "log", Image: "log:1", Env: variables(withImage)},
		)
	})
	bare := podOf(at("bare"))
	g.create(t, web, theirs, bare, podOf(at("stuck"), controlledBy("apps/v1", "ReplicaSet")))
	image := func(container string) string {
		return `{"spec":{"containers":[{"name":"` + container + `","image":"other:2"}]}}`
	}
	const alone = "a workload of apps.kruise.io controls"
	return map[string]attempt{
		"of a CloneSet: it scales out": {g.creates(podOf(at("web-2"), controlledBy(ofOurs, "CloneSet"))), ""},
		"of an older StatefulSet: references keep their version": {
			g.creates(podOf(at("web-3"), controlledBy("apps.kruise.io/v1alpha1", "StatefulSet"))), "",
		},
		"of a DaemonSet: a node is new": {
			g.creates(podOf(at("web-4"), controlledBy("apps.kruise.io/v1alpha1", "DaemonSet"))), "",
		},
		"of a BroadcastJob: it runs on a node": {
			g.creates(podOf(at("web-5"), controlledBy(ofOurs, "BroadcastJob"))), "",
		},
		"of no owner: it could run as any account": {g.creates(podOf(at("a"))), alone},
		"of a ReplicaSet: it is not ours": {
			g.creates(podOf(at("a"), controlledBy("apps/v1", "ReplicaSet"))), alone,
		},
		"of a StatefulSet of apps: only the group is ours": {
			g.creates(podOf(at("a"), controlledBy("apps/v1", "StatefulSet"))), alone,
		},
		"owned, not controlled: no controller counts it": {g.creates(podOf(at("a"), ownedBy(ofOurs, "CloneSet"))), alone},
		"of a kind without pods: it creates none": {
			g.creates(podOf(at("a"), controlledBy(ofOurs, "SidecarSet"))), alone,
		},
		"in-place update: the CloneSet asks for it": {g.patches(web, strategic, image("main")), ""},
		"resize: the CloneSet asks for it":          {g.patchesPart("resize", web, resize("150m")), ""},
		"lifecycle: hooks have finalizers": {
			g.patches(web, merge, `{"metadata":{"finalizers":["a.b/hook"],"labels":{"a":"b"}}}`), "",
		},
		"adoption: its selector matches": {
			g.patches(bare, strategic, ownerPatch(ofOurs, "CloneSet", true), runtimeclient.DryRunAll), "",
		},
		"release: its selector matches no more": {
			g.patches(web, strategic, `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"of-CloneSet"}]}}`,
				runtimeclient.DryRunAll), "",
		},
		"sidecar: a SidecarSet injected it":       {g.patches(theirs, strategic, image("proxy")), ""},
		"sidecar of a job: no daemon can stop it": {g.patches(theirs, strategic, image("log")), ""},
		"deletion cost: a WorkloadSpread asks for it": {
			g.patches(theirs, merge, `{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"5"}}}`), "",
		},
		"container of others: it is not ours": {g.patches(theirs, strategic, image("main")), alone},
		"init container of others: no SidecarSet updates it": {
			g.patches(theirs, strategic, `{"spec":{"initContainers":[{"name":"init","image":"other:2"}]}}`), alone,
		},
		"container of a bare pod: it is not ours": {g.patches(bare, strategic, image("main")), alone},
		"resize of others: it is not ours":        {g.patchesPart("resize", theirs, resize("150m")), alone},
		"deadline of others: the pod would fail": {
			g.patches(theirs, merge, `{"spec":{"activeDeadlineSeconds":1}}`), "deadlines",
		},
		"finalizer of others: it would hold the pod": {
			g.patches(bare, merge, `{"metadata":{"finalizers":["a.b/c"]}}`), "finalizers",
		},
		"finalizer of others goes: their controller waits for it": {
			g.patches(theirs, merge, `{"metadata":{"finalizers":null}}`), "finalizers",
		},
		"owner of others: the pod would go with it": {
			g.patches(bare, strategic, ownerPatch("apps/v1", "ReplicaSet", true)), "who else owns",
		},
		"owner of others goes: it would be replaced": {
			g.patches(theirs, merge, `{"metadata":{"ownerReferences":null}}`), "who else owns",
		},
		"an administrator's pod: the policy is about the manager": {
			func(ctx context.Context) error { return g.Client.Create(ctx, podOf(at("any"))) }, "",
		},
		"deletion of others' pod: a WorkloadSpread reschedules it": {g.deletes(podOf(at("stuck"))), ""},
		"ephemeral container: an EphemeralJob asks for it": {
			g.patchesPart("ephemeralcontainers", theirs, ephemeral()), "",
		},
	}
}

// statuses are writes of the status of pods.
func (g *policyGround) statuses(t *testing.T) map[string]attempt {
	t.Helper()
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	job := podOf(at("job-1"), controlledBy("batch/v1", "Job"), started(), func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: "log", Image: "log:1", Env: variables("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"),
		})
	})
	theirs := podOf(at("served-1"), controlledBy("apps/v1", "ReplicaSet"), started())
	for _, p := range []*corev1.Pod{job, theirs} {
		status := p.Status
		g.create(t, p)
		p.Status = status
		if err := g.Client.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	status := func(p *corev1.Pod, body string) func(context.Context) error { return g.patchesPart("status", p, body) }
	const conditions = "the phase and conditions alone"
	return map[string]attempt{
		"readiness: KruisePodReady holds it": {
			status(theirs, `{"status":{"conditions":[{"type":"KruisePodReady","status":"False"}]}}`), "",
		},
		"marks of a probe: a PodProbeMarker asks for it": {
			status(theirs,
				`{"metadata":{"labels":{"idle":"true"},"annotations":{"a":"b"}},"status":{"conditions":[{"type":"idle","status":"True"}]}}`),
			"",
		},
		"end of a job: its sidecars do not count": {
			status(job, `{"status":{"phase":"Succeeded","conditions":[{"type":"SidecarTerminated","status":"True"}]}}`), "",
		},
		"end of others: it would be replaced": {
			status(theirs, `{"status":{"phase":"Failed"}}`), "sidecars end with a job",
		},
		"a job begins again: it would never end": {
			status(job, `{"status":{"phase":"Unknown"}}`), "sidecars end with a job",
		},
		"address: endpoints would send requests there": {
			status(theirs, `{"status":{"podIP":"10.9.9.9","podIPs":[{"$patch":"replace"},{"ip":"10.9.9.9"}]}}`), conditions,
		},
		"containers: the kubelet reports them": {
			status(theirs, `{"status":{"containerStatuses":[{"name":"main","ready":true,"image":"x","imageID":"forged"}]}}`),
			conditions,
		},
		"finalizer: it would hold the pod": {status(theirs, `{"metadata":{"finalizers":["a.b/c"]}}`), "finalizers"},
	}
}

// reserved are writes in namespaces whose pods may do anything.
func (g *policyGround) reserved(t *testing.T) map[string]attempt {
	t.Helper()
	at := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	ours := func(namespace, name string) *corev1.Pod {
		return podOf(at(namespace, name), controlledBy(ofOurs, "DaemonSet"), started())
	}
	dns := podOf(at("kube-system", "dns"), controlledBy("apps/v1", "ReplicaSet"), func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: "proxy", Image: "proxy:1", Env: variables("IS_INJECTED"),
		})
	})
	agent, manager := ours("kube-system", "agent"), ours("kruise-system", "manager")
	g.create(t, dns, agent, manager)
	const not = "runs in this namespace"
	job := &batchv1.Job{ObjectMeta: at("kube-system", "a")}
	job.Spec.Template.Spec = podOf(at("", "")).Spec
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	controlledBy(ofOurs, "AdvancedCronJob")(&job.ObjectMeta)
	return map[string]attempt{
		"a pod in kube-system: it could run as any controller":     {g.creates(ours("kube-system", "a")), not},
		"a pod beside the manager: it could run as a daemon":       {g.creates(ours("kruise-system", "a")), not},
		"a pod beside pull secrets: it could mount them":           {g.creates(ours("kruise-daemon-config", "a")), not},
		"a job in kube-system: it creates pods":                    {g.creates(job), not},
		"a job, as a dry run: admission validates templates by it": {g.creates(job, runtimeclient.DryRunAll), ""},
		"an image: it would run as root on all nodes": {
			g.patches(agent, strategic, `{"spec":{"containers":[{"name":"main","image":"other:2"}]}}`), not,
		},
		"an image of a sidecar: no SidecarSet injects here": {
			g.patches(dns, strategic, `{"spec":{"containers":[{"name":"proxy","image":"other:2"}]}}`), not,
		},
		"a resize: it runs differently": {g.patchesPart("resize", agent, resize("150m")), not},
		"an ephemeral container: it would have the account of the pod": {
			g.patchesPart("ephemeralcontainers", dns, ephemeral()), not,
		},
		"deletion: the cluster would lose it":              {g.deletes(dns), not},
		"deletion of a manager: the cluster would lose it": {g.deletes(manager), not},
		"a label: a PodUnavailableBudget stamps pods": {
			g.patches(dns, merge, `{"metadata":{"annotations":{"kruise.io/related-pub":"a"}}}`), "",
		},
		"a condition: a PodProbeMarker asks for it": {
			g.patchesPart("status", dns, `{"status":{"conditions":[{"type":"idle","status":"True"}]}}`),
			"",
		},
		"an administrator's pod there: the policy is about the manager": {
			func(ctx context.Context) error { return g.Client.Create(ctx, ours("kube-system", "any")) }, "",
		},
	}
}

// podOf is a pod with a container main. What changes its metadata may change that of other kinds.
func podOf(meta metav1.ObjectMeta, changes ...any) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "main:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		},
	}}}}
	for _, change := range changes {
		switch change := change.(type) {
		case func(*metav1.ObjectMeta):
			change(&p.ObjectMeta)
		case func(*corev1.Pod):
			change(p)
		}
	}
	return p
}

func ownedBy(apiVersion, kind string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		ref := metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "web", UID: types.UID("of-" + kind)}
		m.OwnerReferences = append(m.OwnerReferences, ref)
	}
}

func controlledBy(apiVersion, kind string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		ownedBy(apiVersion, kind)(m)
		m.OwnerReferences[len(m.OwnerReferences)-1].Controller = ptr.To(true)
	}
}

// started has a pod run. It has no node, which a resize would need to know.
func started() func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}},
			PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Ready: true, Image: "main:1", ImageID: "sha", ContainerID: "containerd://1",
			}},
		}
	}
}

func variables(names ...string) []corev1.EnvVar {
	all := make([]corev1.EnvVar, len(names))
	for i, name := range names {
		all[i] = corev1.EnvVar{Name: name, Value: "true"}
	}
	return all
}

func resize(cpu string) string {
	return `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}`
}

func ephemeral() string {
	return `{"spec":{"ephemeralContainers":[{"name":"debug","image":"debug:1","terminationMessagePolicy":"File"}]}}`
}
