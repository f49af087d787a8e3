package review

import "fmt"

// Spoke is an object of v1alpha1. Hub is its type in v1beta1.
type Spoke[H any] interface {
	// ConvertTo fills in the object of v1beta1.
	ConvertTo(hub H) error
}

// ReadHub decodes an object of a version as v1beta1. It returns hub. Both hub and old must be empty; an object of v1beta1 leaves old empty.
func ReadHub[H any](version Version, raw []byte, hub H, old Spoke[H]) (H, error) {
	if version == Hub {
		return hub, Unmarshal(raw, hub)
	}
	if err := Unmarshal(raw, old); err != nil {
		return hub, err
	}
	if err := old.ConvertTo(hub); err != nil {
		return hub, fmt.Errorf("convert to %s: %w", Hub, err)
	}
	return hub, nil
}
