package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// metadata splits what changes in labels and annotations into what feeds containers and the rest.
func (d *differ) metadata(from, to *corev1.PodTemplateSpec) {
	m := Metadata{
		Labels: changes(from.Labels, to.Labels), Annotations: changes(from.Annotations, to.Annotations),
		AddFinalizers:    minus(to.Finalizers, from.Finalizers),
		RemoveFinalizers: minus(from.Finalizers, to.Finalizers),
	}
	if d.policy.Env != EnvIgnore && len(m.Labels)+len(m.Annotations) > 0 {
		d.feeds(to.Spec.Containers, m)
		for _, refs := range d.change.RefMetadata {
			drop(m.Labels, refs.Labels)
			drop(m.Annotations, refs.Annotations)
		}
	}
	d.change.Metadata = m
}

// feeds finds the containers whose environment is fed from what changes.
func (d *differ) feeds(containers []corev1.Container, m Metadata) {
	for i := range containers {
		c := &containers[i]
		refs := metav1.ObjectMeta{}
		for _, f := range fedBy(c) {
			changed, into := m.Labels, &refs.Labels
			if !f.label {
				changed, into = m.Annotations, &refs.Annotations
			}
			value, ok := changed[f.key]
			if !ok {
				continue
			}
			if d.policy.Env == EnvBlock {
				d.block("spec.containers["+c.Name+"].env["+f.env+"]",
					"its value is fed from "+f.String()+", which changes, and only a new container gets it")
				continue
			}
			if !slices.Contains(d.change.Env, c.Name) {
				d.change.Env = append(d.change.Env, c.Name)
			}
			// There is no place for a removed key: it goes with the rest of the metadata.
			if value != nil {
				if *into == nil {
					*into = map[string]string{}
				}
				(*into)[f.key] = *value
			}
		}
		if len(refs.Labels) > 0 || len(refs.Annotations) > 0 {
			if d.change.RefMetadata == nil {
				d.change.RefMetadata = map[string]metav1.ObjectMeta{}
			}
			d.change.RefMetadata[c.Name] = refs
		}
	}
}

// changes are the entries to write, and those to remove.
func changes(from, to map[string]string) map[string]*string {
	changed := map[string]*string{}
	for key, value := range to {
		if old, ok := from[key]; !ok || old != value {
			changed[key] = &value
		}
	}
	for key := range from {
		if _, ok := to[key]; !ok {
			changed[key] = nil
		}
	}
	return changed
}

// metadataPatch is a change of metadata as the strategic merge patch that waits in a pod during the grace period.
type metadataPatch struct {
	Metadata *Metadata `json:"metadata"`
}

// patch returns the patch; nil for no change.
func (m *Metadata) patch() ([]byte, error) {
	if m.empty() {
		return nil, nil
	}
	data, err := json.Marshal(metadataPatch{m})
	if err != nil {
		return nil, fmt.Errorf("encode change of metadata: %w", err)
	}
	return data, nil
}

// decodeMetadata reads such a patch, ours or another planner's. The order of finalizers does not matter, nor does any
// other field of a pod's metadata.
func decodeMetadata(data []byte) (m Metadata, err error) {
	if len(data) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(data, &metadataPatch{&m}); err != nil {
		return Metadata{}, fmt.Errorf("metaDataPatch: %w", err)
	}
	return m, nil
}

// feed is a label or an annotation that feeds an environment variable.
type feed struct {
	env, key string
	label    bool
}

func (f feed) String() string {
	if f.label {
		return "label " + f.key
	}
	return "annotation " + f.key
}

// fedBy are the labels and annotations that feed a container's environment.
func fedBy(c *corev1.Container) []feed {
	var feeds []feed
	for i := range c.Env {
		e := &c.Env[i]
		// Sidecars read the version of their set this way, and must not restart for it.
		if e.Value != "" || e.ValueFrom == nil || e.ValueFrom.FieldRef == nil || e.Name == kruise.SidecarSetVersionEnvName ||
			e.Name == kruise.SidecarSetVersionAltEnvName {
			continue
		}
		if f, ok := parseField(e.ValueFrom.FieldRef.FieldPath); ok {
			f.env = e.Name
			feeds = append(feeds, f)
		}
	}
	return feeds
}

// parseField reads metadata.labels['key'] and metadata.annotations['key'].
func parseField(path string) (feed, bool) {
	field, rest, _ := strings.Cut(path, "['")
	key, ok := strings.CutSuffix(rest, "']")
	f := feed{key: key, label: field == "metadata.labels"}
	return f, ok && (f.label || field == "metadata.annotations")
}

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
