package roundtrip

import "maps"

// WithKey is a map of labels or annotations with key set to value, or without key when value is empty.
// The map given stays as it is.
func WithKey(m map[string]string, key, value string) map[string]string {
	if m[key] == value {
		if _, present := m[key]; present == (value != "") {
			return m
		}
	}
	m = maps.Clone(m)
	if value == "" {
		delete(m, key)
		return m
	}
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
