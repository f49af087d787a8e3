package podstates

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// WorkloadOf returns which ordinals a workload wants. An Advanced StatefulSet heeds spec.ordinals.start only where
// start is true.
func WorkloadOf(workload *unstructured.Unstructured, start bool) podstate.Workload {
	set, malformed, err := stored.Decode[struct {
		Spec struct {
			Replicas *int32 `json:"replicas"`
			Ordinals struct {
				Start int32 `json:"start"`
			} `json:"ordinals"`
			ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals"`
		} `json:"spec"`
	}](workload)
	if err != nil || malformed != nil || ptr.Deref(set.Spec.Replicas, -1) < 0 {
		return podstate.Workload{Unknown: true}
	}
	w := podstate.Workload{Ordinals: ordinals.Window{Replicas: *set.Spec.Replicas, Start: max(set.Spec.Ordinals.Start, 0)}}
	if workload.GroupVersionKind().Group == v1beta1.GroupVersion.Group {
		w.Ordinals.Reserved, err = ordinals.Parse(set.Spec.ReserveOrdinals)
		w.Unknown = err != nil
		if !start {
			w.Ordinals.Start = 0
		}
	}
	return w
}

// Part returns the fields of a workload that WorkloadOf and package podstate read, for caches that drop others, and the
// generation by which a watch sees a change.
func Part(workload *unstructured.Unstructured) map[string]any {
	part := map[string]any{}
	annotations := map[string]string{}
	for key, value := range workload.GetAnnotations() {
		if strings.HasPrefix(key, "kruise.io/") || strings.HasPrefix(key, "kruisekit.dev/") {
			annotations[key] = value
		}
	}
	if len(annotations) > 0 {
		_ = unstructured.SetNestedStringMap(part, annotations, "metadata", "annotations") // part is empty
	}
	for _, path := range [][]string{
		{"metadata", "deletionTimestamp"},
		{"metadata", "generation"},
		{"spec", "replicas"},
		{"spec", "ordinals"},
		{"spec", "reserveOrdinals"},
	} {
		if value, ok, err := stored.Field(workload, path...); ok && err == nil {
			_ = unstructured.SetNestedField(part, value, path...) // what is on the way is a map
		}
	}
	return part
}

// WhiteList returns the kinds that PersistentPodStates may refer to next to StatefulSets. It reads the ConfigMap
// kruise-configuration of a namespace.
func WhiteList(ctx context.Context, live client.Reader, namespace string) ([]schema.GroupVersionKind, error) {
	name := types.NamespacedName{Namespace: namespace, Name: kruise.ConfigurationName}
	config, err := stored.Find[corev1.ConfigMap](ctx, live, name)
	if err != nil || config == nil || config.Data[kruise.PersistentPodStateWhiteListKey] == "" {
		return nil, err
	}
	var list struct {
		Workloads []schema.GroupVersionKind `json:"workloads"`
	}
	if err := json.Unmarshal([]byte(config.Data[kruise.PersistentPodStateWhiteListKey]), &list); err != nil {
		return nil, fmt.Errorf("decode key %s of ConfigMap %s: %w", kruise.PersistentPodStateWhiteListKey, name, err)
	}
	return list.Workloads, nil
}
