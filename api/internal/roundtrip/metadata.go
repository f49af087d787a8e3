package roundtrip

import (
	"maps"
	"strconv"
)

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

// ParseInt32 reads a decimal number; nil for anything else.
func ParseInt32(text string) *int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	value := int32(n)
	return &value
}

// FormatInt32 writes a decimal number; empty for none.
func FormatInt32(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}
