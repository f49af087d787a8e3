package revision

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

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
