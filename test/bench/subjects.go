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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// subject is a workload that is rolled out.
type subject struct {
	api, kind, name string
	// spec is the object but for its metadata.
	spec string
	// template is the path of the template.
	template string
	// updated and ready are the fields of the status that count pods of the new template, and those that are available.
	updated, ready string
	// pods is how many it has.
	pods int
	// only says that its pods are not recreated, to save time.
	only bool
}

const kruiseAPI = "apps.kruise.io/v1beta1"

// subjectOf returns a workload of n pods. The fields are those of its spec but for the selector and the template.
func subjectOf(kind, name string, n int, fields string) subject {
	return subject{
		api: kruiseAPI, kind: kind, name: name, pods: n, only: true, template: "/spec/template",
		updated: "updatedReplicas", ready: "updatedAvailableReplicas",
		spec: fmt.Sprintf(`{spec: {selector: {matchLabels: {app: %s}}, template: %s, %s}}`, name, podTemplate(name), fields),
	}
}

// inPlace is how workloads update their pods.
const inPlace = `podUpdatePolicy: InPlaceIfPossible, maxUnavailable: ` + share

func cloneSet(name string, n int) subject {
	s := subjectOf("CloneSet", name, n,
		fmt.Sprintf(`replicas: %d, updateStrategy: {type: RollingUpdate, rollingUpdate: {%s}}`, n, inPlace))
	s.only = false
	return s
}

// subjects are the workloads of scenario A: first a CloneSet of n pods, and a Deployment beside it. The others have
// fewer pods where the benchmark is small, and a DaemonSet one on each node.
func subjects(n, others, nodes int) []subject {
	deployment := subjectOf("Deployment", "plain-web", n, fmt.Sprintf(
		`replicas: %d, strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: %s, maxSurge: 0}}`, n, share))
	deployment.api, deployment.ready, deployment.only = "apps/v1", "availableReplicas", false
	ordinals := subjectOf("StatefulSet", "db", others, fmt.Sprintf(`replicas: %d, serviceName: db,
podManagementPolicy: Parallel, updateStrategy: {type: RollingUpdate, rollingUpdate: {%s}}`, others, inPlace))
	// A StatefulSet needs the readiness gate of updates in place in its template.
	ordinals.spec = strings.Replace(ordinals.spec, "containers:",
		"readinessGates: [{conditionType: "+inPlaceReady+"}], containers:", 1)
	daemons := subjectOf("DaemonSet", "agent", nodes, `updateStrategy: {type: RollingUpdate, rollingUpdate: {
rollingUpdateType: InPlaceIfPossible, maxUnavailable: `+share+`}}`)
	daemons.updated, daemons.ready = "updatedNumberScheduled", "numberAvailable"
	return []subject{cloneSet("web", n), deployment, ordinals, daemons, united(others)}
}

// united is a UnitedDeployment of 10 subsets.
func united(n int) subject {
	var parts []string
	for i := range 10 {
		parts = append(parts, fmt.Sprintf("{name: part-%d}", i))
	}
	s := subjectOf("UnitedDeployment", "zoned", n, "")
	s.updated, s.ready = "updatedReplicas", "updatedReadyReplicas"
	s.template = "/spec/template/cloneSetTemplate/spec/template"
	s.spec = fmt.Sprintf(`{spec: {replicas: %d, selector: {matchLabels: {app: %[2]s}}, topology: {subsets: [%s]},
template: {cloneSetTemplate: {metadata: {labels: {app: %[2]s}}, spec: {selector: {matchLabels: {app: %[2]s}},
updateStrategy: {type: RollingUpdate, rollingUpdate: {%s}}, template: %s}}}}}`,
		n, s.name, strings.Join(parts, ", "), inPlace, podTemplate(s.name))
	return s
}

// podTemplate is that of an ordinary service.
func podTemplate(app string) string {
	return `{metadata: {labels: {app: ` + app + `}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: main,
image: "registry.example.com/shop/web:1", env: [{name: LEVEL, value: info}, {name: REGION, value: north}],
ports: [{name: http, containerPort: 8080}]}]}}`
}

// podNamed is a pod of the template.
func podNamed(name, app string) *corev1.Pod {
	pod := &corev1.Pod{}
	_ = yaml.Unmarshal([]byte(podTemplate(app)), pod) // the text is constant
	pod.Name = name
	return pod
}

func (s subject) empty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(s.api)
	object.SetKind(s.kind)
	object.SetNamespace(namespace)
	object.SetName(s.name)
	return object
}

func (s subject) create(ctx context.Context, c client.Client) error {
	object := s.empty()
	if err := yaml.Unmarshal([]byte(s.spec), &object.Object); err != nil {
		return fmt.Errorf("read %s: %w", s.kind, err)
	}
	if err := c.Create(ctx, object); err != nil {
		return fmt.Errorf("create %s: %w", s.kind, err)
	}
	return nil
}

// change sets a field of the container of the template.
func (s subject) change(ctx context.Context, c client.Client, field string, value any) error {
	data, err := json.Marshal([]map[string]any{{
		"op": "add", "path": s.template + "/spec/containers/0/" + field, "value": value,
	}})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	if err := c.Patch(ctx, s.empty(), client.RawPatch(types.JSONPatchType, data)); err != nil {
		return fmt.Errorf("patch %s: %w", s.kind, err)
	}
	return nil
}

// count returns how many pods have the current template and are available.
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

// await returns when n pods are done.
func (s subject) await(ctx context.Context, c client.Client, n int) error {
	return poll(ctx, 20*time.Minute, func(ctx context.Context) error {
		object := s.empty()
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return fmt.Errorf("get %s: %w", s.kind, err)
		}
		if done := s.count(object); done < n {
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
