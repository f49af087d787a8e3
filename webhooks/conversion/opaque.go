package conversion

import (
	"encoding/json"
	"fmt"
	"strings"
)

// keepOpaque sets in dst, as they stand in src, the values at paths that the schemas do not describe.
// Such a value lies under the same path in both versions.
func keepOpaque(src, dst []byte, paths []string) ([]byte, error) {
	for _, path := range paths {
		value, err := valueAt(src, strings.Split(path, "."))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if value == nil {
			continue
		}
		if dst, err = replaceAt(dst, strings.Split(path, "."), value); err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	return dst, nil
}

// valueAt is the JSON value at a path of object keys; nil if there is none.
func valueAt(raw json.RawMessage, path []string) (json.RawMessage, error) {
	for _, key := range path {
		fields, err := object(raw)
		if err != nil || fields[key] == nil {
			return nil, err
		}
		raw = fields[key]
	}
	return raw, nil
}

// replaceAt sets the JSON value at a path. Where raw has no such path it stays as it is.
func replaceAt(raw json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	fields, err := object(raw)
	if err != nil || fields[path[0]] == nil {
		return raw, err
	}
	if fields[path[0]], err = replaceAt(fields[path[0]], path[1:], value); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// object is raw as an object; nil if it is null.
func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	return fields, nil
}
