package podstates

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// WorkloadOf returns which ordinals a workload wants. An Advanced StatefulSet heeds spec.ordinals.start only where
// start is true.
func WorkloadOf(workload *unstructured.Unstructured, start bool) podstate.Workload {
	n, is, err := stored.Value[int64](workload, "spec", "replicas")
	if err != nil || !is || n < 0 || n > 1<<30 {
		return podstate.Workload{Unknown: true}
	}
	w := podstate.Workload{Ordinals: ordinals.Window{Replicas: int32(n)}}
	advanced := workload.GroupVersionKind().Group == v1beta1.GroupVersion.Group
	if first, is, err := stored.Value[int64](workload, "spec", "ordinals", "start"); err == nil && is &&
		(!advanced || start) {
		w.Ordinals.Start = int32(min(max(first, 0), 1<<31-1))
	}
	if advanced {
		reserved, err := reservedOf(workload)
		w.Ordinals.Reserved, w.Unknown = reserved, err != nil
	}
	return w
}

// reservedOf reads spec.reserveOrdinals of an Advanced StatefulSet.
func reservedOf(workload *unstructured.Unstructured) (ordinals.Set, error) {
	items, _, err := stored.Value[[]any](workload, "spec", "reserveOrdinals")
	if err != nil {
		return ordinals.Set{}, err
	}
	all := make([]intstr.IntOrString, 0, len(items))
	for _, item := range items {
		switch item := item.(type) {
		case int64:
			if item < 0 || item > 1<<31-1 {
				return ordinals.Set{}, errReserved
			}
			all = append(all, intstr.FromInt32(int32(item)))
		case string:
			all = append(all, intstr.FromString(item))
		default:
			return ordinals.Set{}, errReserved
		}
	}
	return ordinals.Parse(all)
}

var errReserved = errors.New("spec.reserveOrdinals must be numbers and ranges")

// Part returns the fields of a workload that its PersistentPodState is decided by, for caches that drop others: what
// WorkloadOf and the annotations of package podstate need, the deletion, and the generation by which a watch sees a
// change.
func Part(workload *unstructured.Unstructured) map[string]any {
	part := map[string]any{}
	annotations := map[string]any{}
	for key, value := range workload.GetAnnotations() {
		if strings.HasPrefix(key, "kruise.io/") || strings.HasPrefix(key, "kruisekit.dev/") {
			annotations[key] = value
		}
	}
	if len(annotations) > 0 {
		part["metadata"] = map[string]any{"annotations": annotations}
	}
	for _, path := range [][]string{
		{"metadata", "deletionTimestamp"},
		{"metadata", "generation"},
		{"spec", "replicas"},
		{"spec", "ordinals"},
		{"spec", "reserveOrdinals"},
	} {
		if value, is, err := stored.Field(workload, path...); is && err == nil {
			within, _ := part[path[0]].(map[string]any)
			if within == nil {
				within = map[string]any{}
				part[path[0]] = within
			}
			within[path[1]] = value
		}
	}
	return part
}
