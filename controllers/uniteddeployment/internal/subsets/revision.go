package subsets

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Encode returns the data of the revision of a template, as the reference stores it.
func Encode(t *v1beta1.SubsetTemplate) ([]byte, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	template := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &template); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	template["$patch"] = json.RawMessage(`"replace"`)
	data, err = json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	return data, nil
}

// SameData reports whether two revisions hold the same template. Encodings differ between releases, as in absent and
// empty fields, and OpenKruise up to 1.8 stored the template of a CloneSet in the shape of v1alpha1.
func SameData(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := decode(a)
	if err != nil {
		return false
	}
	y, err := decode(b)
	return err == nil && equality.Semantic.DeepEqual(x, y)
}

// decode reads a template in the shape that it has, as conversion reads the template of an object.
func decode(data []byte) (*v1beta1.SubsetTemplate, error) {
	var old v1alpha1.UnitedDeployment
	if json.Unmarshal(data, &old) == nil {
		var hub v1beta1.UnitedDeployment
		if err := old.ConvertTo(&hub); err != nil {
			return nil, fmt.Errorf("convert revision: %w", err)
		}
		if hub.Annotations[v1alpha1.CloneSetTemplateShapeKey] != "" {
			return &hub.Spec.Template, nil
		}
	}
	var is v1beta1.UnitedDeployment
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, fmt.Errorf("decode revision: %w", err)
	}
	return &is.Spec.Template, nil
}
