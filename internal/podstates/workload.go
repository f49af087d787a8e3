package podstates

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/ordinals"
	"github.com/kruisekit/kruisekit/podstate"
)

// WorkloadOf returns which ordinals a workload wants. An Advanced StatefulSet heeds spec.ordinals.start only where start is true.
func WorkloadOf(workload *unstructured.Unstructured, start bool) podstate.Workload {
	n, is, err := unstructured.NestedInt64(workload.Object, "spec", "replicas")
	if err != nil || !is || n < 0 || n > 1<<30 {
		return podstate.Workload{Unknown: true}
	}
	w := podstate.Workload{Ordinals: ordinals.Window{Replicas: int32(n)}}
	advanced := workload.GroupVersionKind().Group == v1beta1.GroupVersion.Group
	if first, is, err := unstructured.NestedInt64(workload.Object, "spec", "ordinals", "start"); err == nil && is && (!advanced || start) {
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
	items, _, err := unstructured.NestedSlice(workload.Object, "spec", "reserveOrdinals")
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
