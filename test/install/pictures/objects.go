package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// objects serves the metrics of objects as kube-state-metrics does: those that its configuration in config/monitoring
// reads of CloneSets, StatefulSets, UnitedDeployments, WorkloadSpreads and PodUnavailableBudgets, and those of pods and
// Deployments that the dashboards ask for. It is a stand-in, for dashboards alone.
type objects struct {
	client    dynamic.Interface
	resources []resource
}

// resource is an entry of the configuration of kube-state-metrics.
type resource struct {
	GroupVersionKind struct{ Group, Version, Kind string }
	MetricNamePrefix string
	LabelsFromPath   map[string][]string
	Metrics          []struct {
		Name string
		Each struct{ Gauge, Info, StateSet *reading }
	}
}

type reading struct {
	Path, ValueFrom, List []string
	LabelName             string
	LabelsFromPath        map[string][]string
	NilIsZero             bool
}

func newObjects(config *rest.Config, path string) (*objects, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of objects: %w", err)
	}
	var configuration struct {
		Spec struct{ Resources []resource }
	}
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		return nil, fmt.Errorf("read the metrics of objects: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &objects{client: client, resources: configuration.Spec.Resources}, nil
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := o.text(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write([]byte(text))
}

func (o *objects) text(ctx context.Context) (string, error) {
	var b strings.Builder
	for _, r := range o.resources {
		kind := r.GroupVersionKind
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind(kind))
		list, err := o.list(ctx, plural)
		if err != nil {
			return "", err
		}
		for _, item := range list {
			b.WriteString(r.of(item.Object))
		}
	}
	pods, err := o.list(ctx, corev1.SchemeGroupVersion.WithResource("pods"))
	if err != nil {
		return "", err
	}
	for _, pod := range pods {
		b.WriteString(ofPod(pod))
	}
	deployments, err := o.list(ctx, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	if err != nil {
		return "", err
	}
	for _, d := range deployments {
		ready, _, _ := unstructured.NestedInt64(d.Object, "status", "readyReplicas")
		line(&b, "kube_deployment_status_replicas_ready", map[string]string{
			"namespace": d.GetNamespace(), "deployment": d.GetName(),
		}, ready)
	}
	return b.String(), nil
}

func (o *objects) list(ctx context.Context, of schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	list, err := o.client.Resource(of).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", of.Resource, err)
	}
	return list.Items, nil
}

func ofPod(pod unstructured.Unstructured) string {
	var b strings.Builder
	base := map[string]string{"namespace": pod.GetNamespace(), "pod": pod.GetName()}
	with := func(key, value string) map[string]string {
		all := maps.Clone(base)
		all[key] = value
		return all
	}
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, status := range statuses {
		name := fmt.Sprint(at(status, "name"))
		line(&b, "kube_pod_container_status_restarts_total", with("container", name), at(status, "restartCount"))
	}
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, condition := range conditions {
		if at(condition, "type") == string(corev1.PodReady) {
			for _, status := range []string{"true", "false", "unknown"} {
				is := strings.EqualFold(fmt.Sprint(at(condition, "status")), status)
				line(&b, "kube_pod_status_ready", with("condition", status), is)
			}
		}
	}
	return b.String()
}

// of returns the metrics of an object.
func (r resource) of(object map[string]any) string {
	var b strings.Builder
	for _, m := range r.Metrics {
		name := r.MetricNamePrefix + "_" + m.Name
		read := m.Each.Gauge
		if read == nil {
			read = m.Each.StateSet
		}
		if read == nil {
			continue // an Info is no number
		}
		for _, part := range parts(at(object, read.Path...)) {
			labels := map[string]string{}
			for label, path := range r.LabelsFromPath {
				labels[label] = fmt.Sprint(at(object, path...))
			}
			for label, path := range read.LabelsFromPath {
				labels[label] = fmt.Sprint(at(part, path...))
			}
			value := at(part, read.ValueFrom...)
			if m.Each.Gauge != nil {
				if value == nil && read.NilIsZero {
					value = int64(0)
				}
				line(&b, name, labels, value)
				continue
			}
			for _, state := range read.List {
				labels[read.LabelName] = state
				line(&b, name, labels, fmt.Sprint(value) == state)
			}
		}
	}
	return b.String()
}

// parts are the elements of a list, or a value itself.
func parts(value any) []any {
	if list, ok := value.([]any); ok {
		return list
	}
	return []any{value}
}

// at is the value at a path; nil for nothing.
func at(value any, path ...string) any {
	for _, key := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

// line writes a sample, if the value is a number.
func line(b *strings.Builder, name string, labels map[string]string, value any) {
	var number float64
	switch v := value.(type) {
	case int64:
		number = float64(v)
	case float64:
		number = v
	case bool:
		if v {
			number = 1
		}
	case string:
		share, percent := strings.CutSuffix(v, "%")
		if moment, err := time.Parse(time.RFC3339, v); err == nil {
			number = float64(moment.Unix())
		} else if _, err := fmt.Sscan(share, &number); err != nil {
			return
		} else if percent {
			number /= 100
		}
	default:
		return
	}
	var pairs []string
	for key, value := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", key, value))
	}
	slices.Sort(pairs)
	fmt.Fprintf(b, "%s{%s} %g\n", name, strings.Join(pairs, ","), number)
}
