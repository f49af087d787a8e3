//go:build envtest

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster"
)

// testPolicy has the token of a daemon on node-a write to objects of both nodes.
func testPolicy(t *testing.T, c *cluster.Cluster) {
	for _, file := range []string{"account.yaml", "role.yaml", "bindings.yaml", "policy.yaml"} {
		if _, err := c.Kubectl(t.Context(), "apply", "-f", "../../../config/daemon/"+file); err != nil {
			t.Fatal(err)
		}
	}
	p := newPolicyGround(t, c)
	onA, unbound := p.client(t, p.daemonPod(t, "node-a")), p.client(t, nil)
	cluster.Eventually(t, func(ctx context.Context) error {
		if err := annotate("pod-b", "x")(ctx, onA); !refusedByPolicy(err, "of this node") {
			return fmt.Errorf("the policy does not decide yet: %w", err)
		}
		return nil
	})
	p.create(t, `{"apiVersion":"apps.kruise.io/v1beta1","kind":"NodeImage","metadata":{"name":"node-c"}}`)
	onC := p.client(t, p.daemonPod(t, "node-c"))
	t.Run("events", func(t *testing.T) { testEvents(t, p, onA) })
	cases := map[string]struct {
		as      runtimeclient.Client
		write   func(context.Context, runtimeclient.Client) error
		refused string
	}{
		"annotation of its pod: it reports the containers":  {onA, annotate("pod-a", "{}"), ""},
		"annotation of another's pod: the pod is on node-b": {onA, annotate("pod-b", "{}"), "of this node"},
		"another annotation: others own it": {
			onA, patchPod("pod-a", `{"metadata":{"annotations":{"a":"b"}}}`), "runtime-containers-meta alone",
		},
		"an annotation goes: others own it": {
			onA, patchPod("pod-a", `{"metadata":{"annotations":{"kept":null}}}`), "runtime-containers-meta alone",
		},
		"a label: apps.kruise.io/specified-delete has a CloneSet delete the pod": {
			onA, patchPod("pod-a", `{"metadata":{"labels":{"apps.kruise.io/specified-delete":"true"}}}`),
			"must not change labels",
		},
		"a finalizer: it would hold the pod": {
			onA, patchPod("pod-a", `{"metadata":{"finalizers":["a.b/c"]}}`), "must not change labels",
		},
		"a condition: the kubelet owns the status": {
			onA, patchPod("pod-a", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), "the status of a pod",
		},
		"status of its NodeImage: it reports pulls": {
			onA, patchStatus("NodeImage", "", "node-a", `{"status":{"desired":1,"pulling":1}}`), "",
		},
		"status of an empty NodeImage: without a spec, which the kind does not require": {
			onC, patchStatus("NodeImage", "", "node-c", `{"status":{"desired":0}}`), "",
		},
		"status of another's NodeImage: pulls there would seem to have ended": {
			onA, patchStatus("NodeImage", "", "node-b", `{"status":{"desired":1}}`), "of this node",
		},
		"status of its request: it reports restarts": {
			onA, patchStatus("ContainerRecreateRequest", "shop", "again-a", `{"status":{"phase":"Recreating"}}`), "",
		},
		"status of another's request: a restart there would seem to be over": {
			onA, patchStatus("ContainerRecreateRequest", "shop", "again-b", `{"status":{"phase":"Completed"}}`), "of this node",
		},
		"status of its NodePodProbe: it reports results of probes": {
			onA, patchStatus("NodePodProbe", "", "node-a", `{"status":{"podProbeStatuses":[]}}`), "",
		},
		"status of another's NodePodProbe: results there would mark pods": {
			onA, patchStatus("NodePodProbe", "", "node-b", `{"status":{"podProbeStatuses":[]}}`), "of this node",
		},
		"a token of no node: one that was made by hand is bound to no pod": {
			unbound, annotate("pod-a", "{}"), "bound to a pod",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			err := test.write(t.Context(), test.as)
			if test.refused == "" && err != nil || test.refused != "" && !refusedByPolicy(err, test.refused) {
				t.Errorf("%v, want %q", err, test.refused)
			}
		})
	}
}

func refusedByPolicy(err error, text string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "kruise-daemon") &&
		strings.Contains(err.Error(), text)
}

// policyGround has two nodes, and of each kind one object on each.
type policyGround struct{ *cluster.Cluster }

func newPolicyGround(t *testing.T, c *cluster.Cluster) policyGround {
	t.Helper()
	p := policyGround{c}
	p.create(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	for _, letter := range []string{"a", "b"} {
		for _, text := range []string{
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%[1]s"}}`,
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"namespace":"shop","name":"sa-%[1]s"}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"pod-%[1]s","annotations":{"kept":"x"}},
				"spec":{"serviceAccountName":"sa-%[1]s","nodeName":"node-%[1]s","containers":[{"name":"a","image":"a"}]}}`,
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"NodeImage","metadata":{"name":"node-%[1]s"},"spec":{}}`,
			`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"NodePodProbe","metadata":{"name":"node-%[1]s"},"spec":{}}`,
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"namespace":"shop","name":"again-%[1]s",
				"labels":{"crr.apps.kruise.io/node-name":"node-%[1]s"}},"spec":{"podName":"pod-%[1]s","containers":[{"name":"a"}]}}`,
		} {
			p.create(t, fmt.Sprintf(text, letter))
		}
	}
	return p
}

func (p policyGround) create(t *testing.T, text string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	if err := p.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// daemonPod is a pod of the daemon on a node.
func (p policyGround) daemonPod(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "daemon-on-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: "kruise-daemon", Containers: []corev1.Container{{Name: "daemon", Image: "a"}},
		},
	}
	if err := p.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// client has a token of the daemon's account, which is bound to a pod unless that is nil.
func (p policyGround) client(t *testing.T, pod *corev1.Pod) runtimeclient.Client {
	t.Helper()
	all, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}
	}
	token, err := all.CoreV1().ServiceAccounts("kruise-system").CreateToken(t.Context(), "kruise-daemon",
		request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rc := rest.AnonymousClientConfig(p.Config)
	rc.BearerToken = token.Status.Token
	own, err := runtimeclient.New(rc, runtimeclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func patchPod(name, body string) func(context.Context, runtimeclient.Client) error {
	return func(ctx context.Context, c runtimeclient.Client) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		return c.Status().Patch(ctx, pod, runtimeclient.RawPatch(types.StrategicMergePatchType, []byte(body)))
	}
}

func annotate(name, text string) func(context.Context, runtimeclient.Client) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		"apps.kruise.io/runtime-containers-meta": text,
	}}})
	return func(ctx context.Context, c runtimeclient.Client) error {
		return errors.Join(err, patchPod(name, string(body))(ctx, c))
	}
}

func patchStatus(kind, namespace, name, body string) func(context.Context, runtimeclient.Client) error {
	return func(ctx context.Context, c runtimeclient.Client) error {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("apps.kruise.io/v1beta1")
		if kind == "NodePodProbe" {
			o.SetAPIVersion("apps.kruise.io/v1alpha1")
		}
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return c.Status().Patch(ctx, o, runtimeclient.RawPatch(types.MergePatchType, []byte(body)))
	}
}
