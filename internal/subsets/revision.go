package subsets

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

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

// SameData reports whether two revisions hold the same template. Encodings differ between releases, as in absent and empty fields.
func SameData(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	type content struct {
		Spec struct {
			Template v1beta1.SubsetTemplate `json:"template"`
		} `json:"spec"`
	}
	var x, y content
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && equality.Semantic.DeepEqual(x, y)
}
