// Package jsonpatch writes JSON patches, RFC 6902: the answers of webhooks, and writes that test what they were decided upon.
// The primitives stand below it and write theirs themselves.
package jsonpatch

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Operation is one step of a patch.
type Operation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// Value is written whatever it is, for null, false and 0 are values. A removal has none, and whoever applies it does not look.
	Value any `json:"value"`
}

// Add sets the key of an object, whatever was there, or puts an element into a list before the one that is there.
func Add(path string, value any) Operation { return Operation{Op: "add", Path: path, Value: value} }

// Replace exchanges what is there.
func Replace(path string, value any) Operation {
	return Operation{Op: "replace", Path: path, Value: value}
}

// Remove takes away what is there. Where there is nothing the whole patch fails.
func Remove(path string) Operation { return Operation{Op: "remove", Path: path} }

// Test has the whole patch fail where there is another value.
func Test(path string, value any) Operation { return Operation{Op: "test", Path: path, Value: value} }

// Pointer makes a key a part of a path.
func Pointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Encode gives a patch as it is sent.
func Encode(patch []Operation) ([]byte, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return data, nil
}
