package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// subject is a workload that is rolled out.
type subject struct {
	group, version, kind, name string
	// spec is what it has beside template and selector.
	spec map[string]any
	// template is where the template is.
	template []string
	// updated and ready are the fields of the status that count pods of the new template, and those that are available.
	updated, ready string
	// pods is how many it has.
	pods int
	// only says that its pods are not recreated, to save time.
	only bool
	// gated says that its template has the readiness gate of updates in place, which a StatefulSet needs.
	gated bool
}

func advanced(kind, name string) subject {
	return subject{
		group: "apps.kruise.io", version: "v1beta1", kind: kind, name: name, template: []string{"spec", "template"},
		updated: "updatedReplicas", ready: "updatedAvailableReplicas",
	}
}

func cloneSet(name string, n int, strategy map[string]any) subject {
	s := advanced("CloneSet", name)
	s.pods, s.spec = n, map[string]any{"replicas": int64(n), "updateStrategy": strategy}
	return s
}

// subjects are the workloads of scenario A: first a CloneSet of n pods, and a Deployment beside it. The others have
// fewer pods where the benchmark is small, and a DaemonSet one on each node.
func subjects(n, others, nodes int) []subject {
	rolling := map[string]any{"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": share}
	deployment := subject{
		group: "apps", version: "v1", kind: "Deployment", name: "plain-web", pods: n, template: []string{"spec", "template"},
		updated: "updatedReplicas", ready: "availableReplicas",
		spec: map[string]any{"replicas": int64(n), "strategy": map[string]any{
			"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": share, "maxSurge": int64(0)},
		}},
	}
	ordinals := advanced("StatefulSet", "db")
	ordinals.pods, ordinals.only, ordinals.gated = others, true, true
	ordinals.spec = map[string]any{
		"replicas": int64(others), "serviceName": "db", "podManagementPolicy": "Parallel",
		"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": rolling},
	}
	daemons := advanced("DaemonSet", "agent")
	daemons.pods, daemons.only = nodes, true
	daemons.updated, daemons.ready = "updatedNumberScheduled", "numberAvailable"
	daemons.spec = map[string]any{"updateStrategy": map[string]any{
		"type":          "RollingUpdate",
		"rollingUpdate": map[string]any{"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": share},
	}}
	return []subject{cloneSet("web", n, inPlace()), deployment, ordinals, daemons, united(others)}
}

// united is a UnitedDeployment of 10 subsets.
func united(n int) subject {
	s := advanced("UnitedDeployment", "zoned")
	s.pods, s.only = n, true
	s.updated, s.ready = "updatedReplicas", "updatedReadyReplicas"
	s.template = []string{"spec", "template", "cloneSetTemplate", "spec", "template"}
	labels := map[string]any{"app": s.name}
	var parts []any
	for i := range 10 {
		parts = append(parts, map[string]any{"name": fmt.Sprintf("part-%d", i)})
	}
	s.spec = map[string]any{
		"replicas": int64(n), "topology": map[string]any{"subsets": parts},
		"template": map[string]any{"cloneSetTemplate": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"selector": map[string]any{"matchLabels": labels}, "updateStrategy": inPlace()},
		}},
	}
	return s
}

// podTemplate is that of an ordinary service.
func podTemplate(app string) corev1.PodTemplateSpec {
	var t corev1.PodTemplateSpec
	t.Labels = map[string]string{"app": app}
	grace := int64(1)
	t.Spec.TerminationGracePeriodSeconds = &grace
	t.Spec.Containers = []corev1.Container{{
		Name: "main", Image: "registry.example.com/shop/web:1",
		Env:   []corev1.EnvVar{{Name: "LEVEL", Value: "info"}, {Name: "REGION", Value: "north"}},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	}}
	return t
}

// podNamed is a pod of the template.
func podNamed(name, app string) *corev1.Pod {
	template := podTemplate(app)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = name
	return pod
}

// inPlace is the strategy of CloneSets.
func inPlace() map[string]any {
	return map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{
		"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": share,
	}}
}

func (s subject) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: s.group, Version: s.version, Kind: s.kind}
}

func (s subject) empty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.gvk())
	object.SetNamespace(namespace)
	object.SetName(s.name)
	return object
}

func (s subject) create(ctx context.Context, c client.Client) error {
	object := s.empty()
	object.Object["spec"] = runtime.DeepCopyJSON(s.spec)
	template := podTemplate(s.name)
	if s.gated {
		template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		return fmt.Errorf("encode template: %w", err)
	}
	selector := map[string]any{"matchLabels": map[string]any{"app": s.name}}
	if err := unstructured.SetNestedMap(object.Object, selector, "spec", "selector"); err != nil {
		return fmt.Errorf("set selector: %w", err)
	}
	if err := unstructured.SetNestedMap(object.Object, content, s.template...); err != nil {
		return fmt.Errorf("set template: %w", err)
	}
	if err := c.Create(ctx, object); err != nil {
		return fmt.Errorf("create %s: %w", s.kind, err)
	}
	return nil
}

// change merges a change into the containers of the template, by a patch of the one container.
func (s subject) change(ctx context.Context, c client.Client, container map[string]any) error {
	path := "/" + strings.Join(s.template, "/")
	var operations []map[string]any
	for field, value := range container {
		operations = append(operations, map[string]any{
			"op": "add", "path": path + "/spec/containers/0/" + field, "value": value,
		})
	}
	data, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	if err := c.Patch(ctx, s.empty(), client.RawPatch(types.JSONPatchType, data)); err != nil {
		return fmt.Errorf("patch %s: %w", s.kind, err)
	}
	return nil
}

// done reports how many pods have the current template and are available.
func (s subject) done(ctx context.Context, c client.Client) (int, error) {
	object := s.empty()
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: s.name}, object); err != nil {
		return 0, fmt.Errorf("get %s: %w", s.kind, err)
	}
	return s.count(object), nil
}

func (s subject) count(object *unstructured.Unstructured) int {
	field := func(name string) int64 {
		n, _, _ := unstructured.NestedInt64(object.Object, "status", name)
		return n
	}
	if field("observedGeneration") < object.GetGeneration() {
		return 0
	}
	return int(min(field(s.updated), field(s.ready)))
}

// await returns when n pods are done, and what it saw on the way, by the second.
func (s subject) await(ctx context.Context, c client.Client, n int) error {
	return poll(ctx, 20*time.Minute, func(ctx context.Context) error {
		done, err := s.done(ctx, c)
		if err != nil {
			return err
		}
		if done < n {
			return fmt.Errorf("%d of %d pods", done, n)
		}
		return nil
	})
}

// delete deletes the workload and waits until its pods are gone.
func (s subject) delete(ctx context.Context, c client.Client) error {
	if err := c.Delete(ctx, s.empty(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("delete %s: %w", s.kind, err)
	}
	return poll(ctx, 20*time.Minute, func(ctx context.Context) error {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": s.name},
			client.Limit(1)); err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("pods of %s exist", s.name)
		}
		return nil
	})
}
