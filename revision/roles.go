package revision

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// SingleRole is the role of the template in data that Encode returned.
const SingleRole = ""

// EncodeRoles returns the data of a ControllerRevision that holds one template per role of a workload, as of the leader
// and of the workers of a group: a patch that replaces spec.templates, a map by role. With SingleRole alone the data is
// that of Encode, byte for byte.
func EncodeRoles(templates map[string]*corev1.PodTemplateSpec) ([]byte, error) {
	if single, ok := templates[SingleRole]; ok && len(templates) == 1 {
		return Encode(single)
	}
	if len(templates) == 0 {
		return nil, fmt.Errorf("encode templates: %w", errNoTemplate)
	}
	roles := make(map[string]any, len(templates))
	for role, template := range templates {
		if role == SingleRole || template == nil {
			return nil, fmt.Errorf("encode template of role %q: %w", role, errNoRole)
		}
		encoded, err := plain(template)
		if err != nil {
			return nil, fmt.Errorf("encode template of role %q: %w", role, err)
		}
		roles[role] = encoded
	}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"templates": roles}})
	if err != nil {
		return nil, fmt.Errorf("encode templates: %w", err)
	}
	return data, nil
}

// DecodeRoles returns the templates in the data of a ControllerRevision by role. Data of Encode holds one template, of
// SingleRole.
func DecodeRoles(data []byte) (map[string]*corev1.PodTemplateSpec, error) {
	c, err := decode(data)
	if err != nil {
		return nil, err
	}
	return c.templates, nil
}

// SameRoles reports whether two sets of templates have the same roles, with the same template, as Same compares them,
// for each.
func SameRoles(a, b map[string]*corev1.PodTemplateSpec) bool {
	return maps.EqualFunc(a, b, func(x, y *corev1.PodTemplateSpec) bool {
		return x == y || x != nil && y != nil && Same(x, y)
	})
}

// content is what the data of a revision holds.
type content struct {
	templates map[string]*corev1.PodTemplateSpec
	// rest is all that is not a template of a role. It counts as it is.
	rest map[string]any
}

func decode(data []byte) (*content, error) {
	patch := struct {
		Spec struct {
			Template  *corev1.PodTemplateSpec            `json:"template"`
			Templates map[string]*corev1.PodTemplateSpec `json:"templates"`
		} `json:"spec"`
	}{}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, &DataError{Err: err}
	}
	c := &content{templates: map[string]*corev1.PodTemplateSpec{}}
	maps.Copy(c.templates, patch.Spec.Templates)
	delete(c.templates, SingleRole)
	if patch.Spec.Template != nil {
		c.templates[SingleRole] = patch.Spec.Template
	}
	for role, template := range c.templates {
		if template == nil {
			return nil, &DataError{Err: fmt.Errorf("template of role %q: %w", role, errNoRole)}
		}
	}
	if len(c.templates) == 0 {
		return nil, &DataError{Err: errNoTemplate}
	}
	if err := json.Unmarshal(data, &c.rest); err != nil {
		return nil, &DataError{Err: err}
	}
	if spec, ok := c.rest["spec"].(map[string]any); ok {
		delete(spec, "template")
		delete(spec, "templates")
		// Some releases of the reference store the claims of pods too. They are no part of what the pods run.
		delete(spec, "volumeClaimTemplates")
	}
	return c, nil
}

func (c *content) same(other *content) bool {
	return reflect.DeepEqual(c.rest, other.rest) && SameRoles(c.templates, other.templates)
}
