//go:build envtest

package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/launch"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// TestConfigMaps has the account of the manager write ConfigMaps under the policy of config/rbac.
func TestConfigMaps(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Private: true})
	for _, name := range []string{"kruise-system", "shop"} {
		if err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Kubectl(t.Context(), "apply", "--server-side", "-k", "../../../config/rbac"); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*corev1.ConfigMap{
		barrier("kube-system", "aws-auth", "", nil),
		barrier("shop", "mine-barrier", "", map[string]string{"p_1": "true", "colour": "red"}),
		barrier("shop", "old-barrier", "old", map[string]string{"p_1": "true"}),
	} {
		if err := c.Client.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	rc := rest.CopyConfig(c.Config)
	rc.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kruise-system:kruise-manager", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	manager, err := runtimeclient.New(rc, runtimeclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	untilDecided(t, manager)
	add := func(keys ...string) []byte { return addKeys(t, keys...) }
	cases := map[string]struct {
		why     string
		write   func(context.Context) error
		refused string
	}{
		"a barrier":               {"its pod owns it", create(manager, barrier("shop", "web-barrier", "web", map[string]string{"p_-5": "true"})), ""},
		"keys":                    {"priorities that may start", patch(manager, "shop", "mine-barrier", add("p_2", "p_-1")), ""},
		"no key":                  {"nothing changes", patch(manager, "shop", "mine-barrier", add()), ""},
		"that of a former pod":    {"it is replaced", remove(manager, "shop", "old-barrier"), ""},
		"aws-auth":                {"it maps users to groups", patch(manager, "kube-system", "aws-auth", []byte(`{"data":{"mapUsers":"x"}}`)), "name of a barrier"},
		"aws-auth goes":           {"nodes could not join", remove(manager, "kube-system", "aws-auth"), "name of a barrier"},
		"another ConfigMap":       {"the name is that of no barrier", create(manager, barrier("shop", "settings", "settings", nil)), "name of a barrier"},
		"without a pod":           {"nothing would delete it", create(manager, barrier("shop", "a-barrier", "", nil)), "their pod owns"},
		"of another pod":          {"the pod of its name waits for it", create(manager, barrier("shop", "a-barrier", "b", nil)), "their pod owns"},
		"other content":           {"only keys of priorities are read", create(manager, barrier("shop", "a-barrier", "a", map[string]string{"key": "true"})), "add keys of priorities"},
		"another key":             {"only keys of priorities are read", patch(manager, "shop", "mine-barrier", add("colours")), "add keys of priorities"},
		"another value":           {"others own it", patch(manager, "shop", "mine-barrier", []byte(`{"data":{"colour":"blue"}}`)), "change no other"},
		"a key goes":              {"others own it", patch(manager, "shop", "mine-barrier", []byte(`{"data":{"colour":null}}`)), "must not remove keys"},
		"a label":                 {"others own it", patch(manager, "shop", "mine-barrier", []byte(`{"metadata":{"labels":{"a":"b"}}}`)), "its metadata"},
		"another owner's goes":    {"no pod owns it", remove(manager, "shop", "mine-barrier"), "their pod owns"},
		"binary content":          {"others own it", patch(manager, "shop", "mine-barrier", []byte(`{"binaryData":{"a":"eA=="}}`)), "its metadata"},
		"an administrator writes": {"the policy is about the manager", patch(c.Client, "kube-system", "aws-auth", []byte(`{"data":{"a":"b"}}`)), ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			err := test.write(t.Context())
			if test.refused == "" && err != nil || test.refused != "" && !refusedByPolicy(err, test.refused) {
				t.Errorf("%s: %v, want %q", test.why, err, test.refused)
			}
		})
	}
}

func untilDecided(t *testing.T, manager runtimeclient.Client) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = patch(manager, "kube-system", "aws-auth", []byte(`{"data":{"before":"the policy"}}`))(ctx)
		return refusedByPolicy(last, "name of a barrier"), nil
	})
	if err != nil {
		t.Fatal(errors.Join(err, last))
	}
}

func refusedByPolicy(err error, text string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "kruise-manager") && strings.Contains(err.Error(), text)
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
