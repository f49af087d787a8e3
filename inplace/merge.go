package inplace

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// overlay is a new map with the entries of one and those of another on top.
func overlay[K comparable, V any](under, over map[K]V) map[K]V {
	if len(under) == 0 && len(over) == 0 {
		return nil
	}
	merged := make(map[K]V, len(under)+len(over))
	maps.Copy(merged, under)
	maps.Copy(merged, over)
	return merged
}

func mergeResources(under, over map[string]corev1.ResourceRequirements) map[string]corev1.ResourceRequirements {
	merged := overlay(under, over)
	for name, newer := range over {
		if older, ok := under[name]; ok {
			merged[name] = corev1.ResourceRequirements{
				Limits: overlay(older.Limits, newer.Limits), Requests: overlay(older.Requests, newer.Requests),
			}
		}
	}
	return merged
}

func mergeRefs(under, over map[string]metav1.ObjectMeta) map[string]metav1.ObjectMeta {
	merged := overlay(under, over)
	for name, newer := range over {
		older := under[name]
		merged[name] = metav1.ObjectMeta{
			Labels: overlay(older.Labels, newer.Labels), Annotations: overlay(older.Annotations, newer.Annotations),
		}
	}
	return merged
}

// without is a map without the keys that are changed, but for those to keep.
func without(m map[string]string, changed map[string]*string, keep map[string]string) map[string]string {
	rest := map[string]string{}
	for key, value := range m {
		_, is := changed[key]
		if kept, ok := keep[key]; ok {
			rest[key] = kept
		} else if !is {
			rest[key] = value
		}
	}
	return rest
}

func drop[V, W any](from map[string]V, keys map[string]W) {
	for key := range keys {
		delete(from, key)
	}
}

func union(a, b []string) []string {
	return append(slices.Clip(a), minus(b, a)...)
}

func minus(a, b []string) []string {
	var rest []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			rest = append(rest, s)
		}
	}
	return rest
}
