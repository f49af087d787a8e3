//go:build envtest

package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/launch"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// TestPolicies has the account of the manager write under the rights and the policies of config/rbac.
func TestPolicies(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Private: true, CRDDirs: []string{"../../../config/crd/bases"}})
	g := &policyGround{Cluster: c}
	for _, name := range []string{"kruise-system", "kruise-daemon-config", "shop"} {
		g.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, namespace := range []string{"kube-system", "kruise-system", "kruise-daemon-config", "shop"} {
		g.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
	}
	if _, err := c.Kubectl(t.Context(), "apply", "--server-side", "-k", "../../../config/rbac"); err != nil {
		t.Fatal(err)
	}
	rc := rest.CopyConfig(c.Config)
	rc.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kruise-system:kruise-manager",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	var err error
	if g.manager, err = runtimeclient.New(rc, runtimeclient.Options{}); err != nil {
		t.Fatal(err)
	}
	g.untilDecided(t)
	for name, cases := range map[string]func(*testing.T) map[string]attempt{
		"ConfigMaps": g.configMaps, "pods": g.pods, "status of pods": g.statuses, "reserved namespaces": g.reserved,
		"workloads": g.workloads,
		"jobs":      g.jobs, "dependents": g.dependents, "webhooks": g.webhooks, "definitions": g.definitions,
	} {
		t.Run(name, func(t *testing.T) { try(t, cases(t)) })
	}
	t.Run("native", g.testNative) // the last one: it grants rights
}

// policyGround is a control plane with the policies.
type policyGround struct {
	*cluster.Cluster

	manager runtimeclient.Client
}

func (g *policyGround) create(t *testing.T, objects ...runtimeclient.Object) {
	t.Helper()
	for _, o := range objects {
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// attempt is a write, and what the policy answers; empty where the write is the manager's to make.
type attempt struct {
	write   func(context.Context) error
	refused string
}

func try(t *testing.T, cases map[string]attempt) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			err := test.write(t.Context())
			if test.refused == "" && err != nil || test.refused != "" && !refusedByPolicy(err, test.refused) {
				t.Errorf("%v, want %q", err, test.refused)
			}
		})
	}
}

// configMaps are writes of barriers, and of other ConfigMaps.
func (g *policyGround) configMaps(t *testing.T) map[string]attempt {
	for _, m := range []*corev1.ConfigMap{
		barrier("kube-system", "aws-auth", "", nil),
		barrier("shop", "mine-barrier", "", map[string]string{"p_1": "true", "colour": "red"}),
		barrier("shop", "old-barrier", "old", map[string]string{"p_1": "true"}),
	} {
		g.create(t, m)
	}
	manager := g.manager
	add := func(keys ...string) []byte { return addKeys(t, keys...) }
	return map[string]attempt{
		"a barrier: its pod owns it": {
			create(manager, barrier("shop", "web-barrier", "web", map[string]string{"p_-5": "true"})), "",
		},
		"keys: priorities that may start":      {patch(manager, "shop", "mine-barrier", add("p_2", "p_-1")), ""},
		"no key: nothing changes":              {patch(manager, "shop", "mine-barrier", add()), ""},
		"that of a former pod: it is replaced": {remove(manager, "shop", "old-barrier"), ""},
		"aws-auth: it maps users to groups": {
			patch(manager, "kube-system", "aws-auth", []byte(`{"data":{"mapUsers":"x"}}`)), "name of a barrier",
		},
		"aws-auth goes: nodes could not join": {remove(manager, "kube-system", "aws-auth"), "name of a barrier"},
		"another ConfigMap: the name is that of no barrier": {
			create(manager, barrier("shop", "settings", "settings", nil)), "name of a barrier",
		},
		"without a pod: nothing would delete it": {
			create(manager, barrier("shop", "a-barrier", "", nil)), "their pod owns",
		},
		"of another pod: the pod of its name waits for it": {
			create(manager, barrier("shop", "a-barrier", "b", nil)), "their pod owns",
		},
		"other content: only keys of priorities are read": {
			create(manager, barrier("shop", "a-barrier", "a", map[string]string{"key": "true"})), "add keys of priorities",
		},
		"another key: only keys of priorities are read": {
			patch(manager, "shop", "mine-barrier", add("colours")), "add keys of priorities",
		},
		"another value: others own it": {
			patch(manager, "shop", "mine-barrier", []byte(`{"data":{"colour":"blue"}}`)), "change no other",
		},
		"a key goes: others own it": {
			patch(manager, "shop", "mine-barrier", []byte(`{"data":{"colour":null}}`)), "must not remove keys",
		},
		"a label: others own it": {
			patch(manager, "shop", "mine-barrier", []byte(`{"metadata":{"labels":{"a":"b"}}}`)), "its metadata",
		},
		"another owner's goes: no pod owns it": {remove(manager, "shop", "mine-barrier"), "their pod owns"},
		"binary content: others own it": {
			patch(manager, "shop", "mine-barrier", []byte(`{"binaryData":{"a":"eA=="}}`)), "its metadata",
		},
		"an administrator writes: the policy is about the manager": {
			patch(g.Client, "kube-system", "aws-auth", []byte(`{"data":{"a":"b"}}`)), "",
		},
	}
}

// untilDecided waits for each policy.
func (g *policyGround) untilDecided(t *testing.T) {
	t.Helper()
	nobody := metav1.ObjectMeta{Namespace: "shop", Name: "before-the-policy"}
	reserved := nobody
	reserved.Namespace = "kube-system"
	for policy, write := range map[string]func(context.Context) error{
		"kruise-manager":           create(g.manager, barrier("shop", nobody.Name, "", nil)),
		"kruise-manager-workloads": g.creates(unstructuredOf("CloneSet", nobody, cloneSetSpec())),
		"kruise-manager-jobs": g.creates(&corev1.PodTemplate{
			ObjectMeta: nobody, Template: corev1.PodTemplateSpec{Spec: podOf(nobody).Spec},
		}),
		"kruise-manager-pods":     g.creates(podOf(nobody), runtimeclient.DryRunAll),
		"kruise-manager-reserved": g.creates(podOf(reserved, controlledBy("apps.kruise.io/v1beta1", "CloneSet"))),
		"kruise-manager-dependents": g.creates(&appsv1.ControllerRevision{
			ObjectMeta: nobody, Data: runtime.RawExtension{Raw: []byte(`{}`)},
		}, runtimeclient.DryRunAll),
		"kruise-manager-webhooks": g.creates(&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: nobody.Name},
		}, runtimeclient.DryRunAll),
		"kruise-manager-definitions": g.patches(definition("clonesets.apps.kruise.io"), jsonPatch,
			`[{"op":"remove","path":"/spec/versions/0/additionalPrinterColumns"}]`, runtimeclient.DryRunAll),
	} {
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				last = write(ctx)
				return refusedByPolicy(last, "'"+policy+"' with binding"), nil
			})
		if err != nil {
			t.Fatalf("%s: %v", policy, errors.Join(err, last))
		}
	}
}

// creates and patches send a copy of an object, as the manager.
func (g *policyGround) creates(o runtimeclient.Object, options ...runtimeclient.CreateOption) func(
	context.Context,
) error {
	return func(ctx context.Context) error {
		return g.manager.Create(ctx, o.DeepCopyObject().(runtimeclient.Object), options...)
	}
}

// updates sends a whole object, as it is stored, with a label.
func (g *policyGround) updates(o runtimeclient.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		o := o.DeepCopyObject().(runtimeclient.Object)
		if err := g.Client.Get(ctx, runtimeclient.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.SetLabels(map[string]string{"written": "whole"})
		return g.manager.Update(ctx, o)
	}
}

func (g *policyGround) deletes(o runtimeclient.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		return g.manager.Delete(ctx, o.DeepCopyObject().(runtimeclient.Object))
	}
}

func (g *policyGround) patches(
	o runtimeclient.Object, as types.PatchType, body string, options ...runtimeclient.PatchOption,
) func(context.Context) error {
	return func(ctx context.Context) error {
		o := o.DeepCopyObject().(runtimeclient.Object)
		return g.manager.Patch(ctx, o, runtimeclient.RawPatch(as, []byte(body)), options...)
	}
}

func (g *policyGround) patchesPart(subresource string, o runtimeclient.Object, body string) func(
	context.Context,
) error {
	return func(ctx context.Context) error {
		o := o.DeepCopyObject().(runtimeclient.Object)
		return g.manager.SubResource(subresource).Patch(ctx, o,
			runtimeclient.RawPatch(types.StrategicMergePatchType, []byte(body)))
	}
}

func refusedByPolicy(err error, text string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "kruise-manager") &&
		strings.Contains(err.Error(), text)
}

// barrier is a ConfigMap that a pod owns, if one is named.
func barrier(namespace, name, pod string, data map[string]string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	if pod != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID(pod)}}
	}
	return m
}

// addKeys is what the reconciler of launch priorities sends.
func addKeys(t *testing.T, keys ...string) []byte {
	t.Helper()
	body, err := launch.AddPatch(&corev1.ConfigMap{}, keys)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(body), `"uid":""`, "", 1))
}

func create(c runtimeclient.Client, m *corev1.ConfigMap) func(context.Context) error {
	return func(ctx context.Context) error { return c.Create(ctx, m) }
}

func patch(c runtimeclient.Client, namespace, name string, body []byte) func(context.Context) error {
	return func(ctx context.Context) error {
		m := barrier(namespace, name, "", nil)
		if err := c.Patch(ctx, m, runtimeclient.RawPatch(launch.PatchType, body)); err != nil {
			return fmt.Errorf("patch with %s: %w", body, err)
		}
		return nil
	}
}

func remove(c runtimeclient.Client, namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error { return c.Delete(ctx, barrier(namespace, name, "", nil)) }
}
