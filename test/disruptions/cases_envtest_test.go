//go:build envtest

package disruptions_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
)

// testCases: under a budget without room, each request is sent and refused exactly where it disrupts an available pod.
func testCases(t *testing.T, g *ground) {
	g.pods("full", 2, func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}
	})
	exempt := g.pods("exempt", 1, func(pod *corev1.Pod) {
		pod.Labels["app"], pod.Annotations = "full", map[string]string{"pub.kruise.io/no-protect": "true"}
	})[0]
	marked := g.pods("marked", 1, func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"app": "full", "unavailable-pod.kruise.io/x": "y"}
	})[0]
	other := g.pods("free", 1, nil)[0]
	fed := g.pods("fed", 1, func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['mode']"},
		}}}
	})[0]
	set, replicaSet := g.workloads()
	owned := g.pods("owned", 1, func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(set, appsv1beta1.GroupVersion.WithKind("CloneSet")),
		}
	})[0]
	deployed := g.pods("deployed", 1, func(pod *corev1.Pod) {
		pod.Labels["pod-template-hash"] = "abc"
		pod.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(replicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
		}
	})[0]
	g.budget(of("owned", appsv1beta1.GroupVersion.String(), "CloneSet", set.Name), 1)
	g.budget(of("deployed", "apps/v1", "Deployment", "api"), 1)
	g.budget(over("fed", 1, 0), 1)
	g.budget(over("full", 3, 0), 3)
	patch := func(pod *corev1.Pod, data string, subresource ...string) func(kube kubernetes.Interface) error {
		return func(kube kubernetes.Interface) error {
			_, err := kube.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(data),
				metav1.PatchOptions{DryRun: dry()}, subresource...)
			return err
		}
	}
	remove := func(pod *corev1.Pod) func(kube kubernetes.Interface) error {
		return func(kube kubernetes.Interface) error {
			return kube.CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{DryRun: dry()})
		}
	}
	evict := func(name string) func(kube kubernetes.Interface) error {
		return func(kube kubernetes.Interface) error {
			return kube.CoreV1().Pods(namespace).EvictV1(t.Context(), &policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: &metav1.DeleteOptions{DryRun: dry()},
			})
		}
	}
	full := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "full-0"}}
	const image, label = `{"spec":{"containers":[{"name":"app","image":"web:2"}]}}`,
		`{"metadata":{"labels":{"unavailable-pod.kruise.io/x":"y"}}}`
	kube, err := kubernetes.NewForConfig(g.Config)
	if err != nil {
		t.Fatal(err)
	}
	// API servers accept a resize where a kubelet reports resources.
	if _, err := kube.CoreV1().Pods(namespace).Patch(t.Context(), full.Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"containerStatuses":[{"name":"app","resources":{"requests":{"cpu":"100m"}}}]}}`),
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		why  string
		do   func(kubernetes.Interface) error
		code int32
		sent int
	}{
		"deletion": {"a deletion is refused", remove(full), 403, 1},
		"eviction": {"an eviction is refused so that clients wait", evict("full-0"), 429, 1},
		"image":    {"an update in place is refused", patch(full, image), 403, 1},
		"label":    {"a label that makes the pod unavailable is refused", patch(full, label), 403, 1},
		"escape": {
			why: "a pod cannot leave its budget with the update",
			do: patch(full,
				`{"metadata":{"labels":{"app":"free"},"annotations":{"pub.kruise.io/no-protect":"true"}},"spec":{"containers":[{"name":"app","image":"web:2"}]}}`),
			code: 403,
			sent: 1,
		},
		"resize": {
			why:  "a resize is refused, for which the installation has no operation of its own",
			do:   patch(full, `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"200m"}}}]}}`, "resize"),
			code: 403,
			sent: 1,
		},
		"label that feeds": {
			why: "a label that feeds the environment of a container is refused, as the daemon may restart the container",
			do:  patch(fed, `{"metadata":{"labels":{"mode":"b"}}}`), code: 403, sent: 1,
		},
		"label that does not feed": {
			why: "an API server does not tell it from one that does, and it is admitted",
			do:  patch(fed, `{"metadata":{"labels":{"a":"b"}}}`), code: 200, sent: 1,
		},
		"toleration": {
			why:  "an update that restarts nothing is admitted",
			do:   patch(full, `{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}`),
			code: 200,
			sent: 1,
		},
		"other label": {
			why: "a label that restarts nothing is not sent", do: patch(full, `{"metadata":{"labels":{"a":"b"}}}`), code: 200,
		},
		"status":          {"a status is not sent", patch(full, `{"status":{"message":"x"}}`, "status"), 200, 0},
		"exempt":          {"a pod that is exempt is not sent", remove(exempt), 200, 0},
		"exempt eviction": {"an eviction does not show that the pod is exempt, and is admitted", evict(exempt.Name), 200, 1},
		"unavailable":     {"a pod that is unavailable already is not sent", remove(marked), 200, 0},
		"other pod":       {"a pod beside those of a budget is sent, and admitted", remove(other), 200, 1},
		"owned":           {"a pod is found by its owner", remove(owned), 403, 1},
		"deployed":        {"a pod is found by the Deployment of its ReplicaSet", remove(deployed), 403, 1},
	} {
		g.took()
		err := c.do(kube)
		sent := g.took()
		if codeOf(err) != c.code || sent != c.sent {
			t.Errorf("%s: %s: code %d, sent %d times: %v", name, c.why, codeOf(err), sent, err)
		}
		if c.code == 403 && err != nil &&
			!strings.Contains(err.Error(), "is forbidden: pub unavailable allowed is negative") {
			t.Errorf("%s: the message is %q", name, err)
		}
	}
}

func dry() []string { return []string{metav1.DryRunAll} }

// of is a budget of a workload, without room.
func of(name, version, kind, workload string) *policyv1beta1.PodUnavailableBudget {
	return &policyv1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1beta1.PodUnavailableBudgetSpec{
			TargetReference: &policyv1beta1.TargetReference{APIVersion: version, Kind: kind, Name: workload},
			MaxUnavailable:  ptr.To(intstr.FromInt32(0)),
		},
	}
}

// workloads are a CloneSet, and a ReplicaSet of a Deployment.
func (g *ground) workloads() (*appsv1beta1.CloneSet, *appsv1.ReplicaSet) {
	g.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "deployed"}}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "web:1"}}},
	}
	set := &appsv1beta1.CloneSet{ObjectMeta: meta("web"), Spec: appsv1beta1.CloneSetSpec{
		Replicas: ptr.To[int32](1), Selector: selector, Template: template,
	}}
	deployment := &appsv1.Deployment{ObjectMeta: meta("api"), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), Selector: selector, Template: template,
	}}
	replicaSet := &appsv1.ReplicaSet{ObjectMeta: meta("api-abc"), Spec: appsv1.ReplicaSetSpec{
		Replicas: ptr.To[int32](1), Selector: selector, Template: template,
	}}
	for _, o := range []client.Object{set, deployment} {
		if err := g.Client.Create(g.Context(), o); err != nil {
			g.Fatal(err)
		}
	}
	replicaSet.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment")),
	}
	if err := g.Client.Create(g.Context(), replicaSet); err != nil {
		g.Fatal(err)
	}
	return set, replicaSet
}
