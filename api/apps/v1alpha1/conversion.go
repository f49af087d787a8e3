package v1alpha1

import (
	"maps"
	"strconv"
)

// withKey is m with key set to value, or without key when value is empty. m stays as it is.
func withKey(m map[string]string, key, value string) map[string]string {
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

// parseInt32 reads a decimal number; nil for anything else.
func parseInt32(text string) *int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	value := int32(n)
	return &value
}

func formatInt32(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

// each converts the items of a list; nil stays nil.
func each[A, B any](from []A, convert func(A) B) []B {
	if from == nil {
		return nil
	}
	to := make([]B, len(from))
	for i := range from {
		to[i] = convert(from[i])
	}
	return to
}

// eachValue converts the items of the lists in a map; nil stays nil.
func eachValue[A, B any](from map[string][]A, convert func(A) B) map[string][]B {
	if from == nil {
		return nil
	}
	to := make(map[string][]B, len(from))
	for key, list := range from {
		to[key] = each(list, convert)
	}
	return to
}
