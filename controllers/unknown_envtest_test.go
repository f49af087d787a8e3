//go:build envtest

package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// newerTemplate has a field of Kubernetes 1.36 that the types of this module lack, and a field that no Kubernetes has.
const newerTemplate = `{"metadata":{"labels":{"app":%[1]q}},"spec":{"restartPolicy":%[2]q,
	"containers":[{"name":"app","image":"web:1","newer":%[1]q}],"schedulingGroup":{"podGroupName":%[1]q}}}`

// creations records the pods that a client creates.
type creations struct {
	http.RoundTripper

	mu   sync.Mutex
	pods []string
}

func (c *creations) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		c.mu.Lock()
		c.pods = append(c.pods, string(body))
		c.mu.Unlock()
	}
	return c.RoundTripper.RoundTrip(r)
}

// sent reports whether a created pod has a field with a value in its text.
func (c *creations) sent(field string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.pods, func(pod string) bool { return strings.Contains(pod, field) })
}

// Pods of each kind have the fields of their template that the types lack, and a change of one recreates them.
func TestUnknownFieldsReachPods(t *testing.T) {
	mo, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{Private: true, Scheme: mo.Scheme, APIServerFlags: flagsOfGroups(t)})
	if err := c.InstallCRDs(t.Context(), "../config/crd/bases"); err != nil {
		t.Fatal(err)
	}
	recorded := &creations{}
	c.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		recorded.RoundTripper = next
		return recorded
	})
	mo.Metrics = metricsserver.Options{BindAddress: "0"}
	mo.Logger = logr.Discard()
	mgr, err := ctrl.NewManager(c.Config, mo)
	if err != nil {
		t.Fatal(err)
	}
	if err := AddToManager(t.Context(), mgr, Options{Registerer: prometheus.NewRegistry()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	if err := c.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Spec.Taints = nil
	if err := c.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := c.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{
		"CloneSet":    `"replicas":1,"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceIfPossible"}},`,
		"StatefulSet": `"replicas":1,"serviceName":"x",`, "DaemonSet": "", "BroadcastJob": "", "UnitedDeployment": "",
	}
	for kind, spec := range kinds {
		if err := c.Client.Create(t.Context(), newer(t, kind, spec)); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	await(t, func(ctx context.Context) error {
		var missing []error
		for kind := range kinds {
			name := strings.ToLower(kind)
			if !recorded.sent(fmt.Sprintf(`"newer":%q`, name)) || !recorded.sent(fmt.Sprintf(`"podGroupName":%q`, name)) {
				missing = append(missing, fmt.Errorf("no pod of a %s has the fields", kind))
			}
		}
		return errors.Join(missing...)
	})
	set := newer(t, "CloneSet", kinds["CloneSet"])
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"changed"}}}}}`))
	if err := c.Client.Patch(t.Context(), set, patch); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) error {
		var pods unstructured.UnstructuredList
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := c.Client.List(ctx, &pods, client.MatchingLabels{"app": "cloneset"}); err != nil {
			return err
		}
		for i := range pods.Items {
			if len(flagsOfGroups(t)) == 0 && recorded.sent(`"podGroupName":"changed"`) {
				return nil // this API server does not store the field
			}
			group, _, _ := unstructured.NestedString(pods.Items[i].Object, "spec", "schedulingGroup", "podGroupName")
			if group == "changed" {
				return nil
			}
		}
		return fmt.Errorf("none of %d pods is in the changed group", len(pods.Items))
	})
}

// flagsOfGroups lets the API server store the field; none where its version lacks the gate.
func flagsOfGroups(t *testing.T) []string {
	t.Helper()
	if old := os.Getenv(binaries.KubernetesVariable); old == "1.34" || old == "1.35" {
		return nil
	}
	return []string{"--feature-gates=GenericWorkload=true", "--runtime-config=api/alpha=true,api/beta=true"}
}

// newer returns an object of a kind, all of whose templates are newerTemplate.
func newer(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	name, policy := strings.ToLower(kind), "Always"
	if kind == "BroadcastJob" {
		policy = "Never"
	}
	template := fmt.Sprintf(newerTemplate, name, policy)
	selector := fmt.Sprintf(`"selector":{"matchLabels":{"app":%q}},`, name)
	spec += selector + `"template":` + template
	switch kind {
	case "BroadcastJob":
		spec = `"template":` + template
	case "UnitedDeployment":
		spec = selector + `"replicas":1,"topology":{"subsets":[{"name":"a"}]},"template":{"cloneSetTemplate":{"metadata":` +
			fmt.Sprintf(`{"labels":{"app":%q}}`, name) + `,"spec":{` + selector + `"template":` + template + `}}}`
	}
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"apps.kruise.io/v1beta1","kind":%q,"metadata":{"namespace":"default","name":%q},
		"spec":{%s}}`, kind, name, spec)
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return object
}

func await(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		}); err != nil {
		t.Fatal(errors.Join(err, last))
	}
}
