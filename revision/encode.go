package revision

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// Encode returns the data of a ControllerRevision that holds t: a patch that replaces spec.template of the
// workload. The bytes are those that every release of the reference has written, whatever the type library
// prints today, because names and hashes of stored revisions derive from them.
func Encode(t *corev1.PodTemplateSpec) ([]byte, error) {
	return (*Layout)(nil).Encode(map[string]*corev1.PodTemplateSpec{SingleRole: t})
}

// plain returns a template as JSON values, as the reference has encoded it.
func plain(t *corev1.PodTemplateSpec) (map[string]any, error) {
	encoded, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	template := map[string]any{}
	if err := json.Unmarshal(encoded, &template); err != nil {
		return nil, err
	}
	template["$patch"] = "replace"
	keepNullTimes(template)
	return template, nil
}

// keepNullTimes writes the creationTimestamp of embedded metadata as null, as type libraries before v0.34 did.
func keepNullTimes(template map[string]any) {
	nullTime := func(owner map[string]any) {
		meta, ok := owner["metadata"].(map[string]any)
		if !ok {
			meta = map[string]any{}
			owner["metadata"] = meta
		}
		if _, set := meta["creationTimestamp"]; !set {
			meta["creationTimestamp"] = nil
		}
	}
	nullTime(template)
	volumes, _ := under(template, "spec", "volumes").([]any)
	for _, v := range volumes {
		if claim, ok := under(v, "ephemeral", "volumeClaimTemplate").(map[string]any); ok {
			nullTime(claim)
		}
	}
}

// under returns the value under keys; nil if there is none.
func under(v any, keys ...string) any {
	for _, key := range keys {
		fields, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = fields[key]
	}
	return v
}

// Decode returns the template in the data of a ControllerRevision that Encode returned.
func Decode(data []byte) (*corev1.PodTemplateSpec, error) {
	patch := struct { // faster than the Layout of one place, and called in each pass
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}{}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, unreadable(err)
	}
	if patch.Spec.Template == nil {
		return nil, unreadable(errNoTemplate)
	}
	return patch.Spec.Template, nil
}
