package revision

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	putBack(template)
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
	fields, _ := v.(map[string]any)
	value, _, _ := unstructured.NestedFieldNoCopy(fields, keys...)
	return value
}

// Decode returns the template in the data of a ControllerRevision that Encode returned.
func Decode(data []byte) (*corev1.PodTemplateSpec, error) {
	var patch struct { // a third of the time that the Layout of one place takes
		Spec struct {
			Template json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, unreadable(err)
	}
	if patch.Spec.Template == nil || string(patch.Spec.Template) == "null" {
		return nil, unreadable(errNoTemplate)
	}
	template, err := decodeTemplate(patch.Spec.Template)
	if err != nil {
		return nil, unreadable(err)
	}
	return template, nil
}

// SingleRole is the role of the template in data that Encode returned.
const SingleRole = ""

// EncodeRoles returns the data of a ControllerRevision that holds one template per role of a workload, as of the leader
// and of the workers of a group: a patch that replaces spec.templates, a map by role. With SingleRole alone the data is
// that of Encode, byte for byte.
func EncodeRoles(templates map[string]*corev1.PodTemplateSpec) ([]byte, error) {
	if templates[SingleRole] != nil && len(templates) > 1 {
		return nil, fmt.Errorf("encode template of role %q: %w", SingleRole, errNoRole)
	}
	return (*Layout)(nil).Encode(templates)
}

// DecodeRoles returns the templates in the data of a ControllerRevision by role. Data of Encode holds one template, of
// SingleRole.
func DecodeRoles(data []byte) (map[string]*corev1.PodTemplateSpec, error) {
	return (*Layout)(nil).Decode(data)
}

// SameRoles reports whether two sets of templates have the same roles, with the same template, as Same compares them,
// for each.
func SameRoles(a, b map[string]*corev1.PodTemplateSpec) bool {
	return maps.EqualFunc(a, b, func(x, y *corev1.PodTemplateSpec) bool {
		return x == y || x != nil && y != nil && Same(x, y)
	})
}

// maxOwnerLength leaves room for the hash in the name of a revision.
const maxOwnerLength = 223

// Hash of a revision's data. The collision count, when there is one, is part of it.
func Hash(data []byte, collisions *int32) string {
	h := fnv.New32()
	_, _ = h.Write(data)
	if collisions != nil {
		_, _ = h.Write(strconv.AppendInt(nil, int64(*collisions), 10))
	}
	return EncodeSafely(h.Sum32())
}

// EncodeSafely prints a number in letters that form no bad words, as the hashes in names and labels are.
func EncodeSafely(n uint32) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	text := strconv.AppendUint(nil, uint64(n), 10)
	for i, digit := range text {
		text[i] = letters[int(digit)%len(letters)]
	}
	return string(text)
}

// Name of the revision of an owner.
func Name(owner, hash string) string {
	if len(owner) > maxOwnerLength {
		owner = owner[:maxOwnerLength]
	}
	return owner + "-" + hash
}

// Short is the hash in the name of a revision: what follows the last dash.
func Short(name string) string {
	return name[strings.LastIndexByte(name, '-')+1:]
}

// Match reports whether two values of the label controller-revision-hash mean one revision: some pods carry the
// name of it, others only the hash.
func Match(a, b string) bool {
	return a == b || Short(a) == Short(b)
}

// Fingerprint is the number by which kubelets and the reference recognise that a value has changed: a hash of the bytes
// of its JSON, printed as a list of numbers.
func Fingerprint(v any) (uint32, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encode what is hashed: %w", err)
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "(%T)%v", data, data)
	return h.Sum32(), nil
}
