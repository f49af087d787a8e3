package conversion

import (
	"encoding/json"
	"fmt"
	"strings"
)

// An opaque value lies under the same path in both versions, and no schema describes it.

// takeOpaque separates an object from the values at the given paths; a path without a value gives nil.
func takeOpaque(raw json.RawMessage, paths []string) (rest json.RawMessage, values []json.RawMessage, err error) {
	values = make([]json.RawMessage, len(paths))
	for i, path := range paths {
		if raw, values[i], err = take(raw, strings.Split(path, ".")); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return raw, values, nil
}

// putOpaque puts the values back at their paths.
func putOpaque(raw json.RawMessage, paths []string, values []json.RawMessage) (json.RawMessage, error) {
	var err error
	for i, path := range paths {
		if values[i] == nil {
			continue
		}
		if raw, err = put(raw, strings.Split(path, "."), values[i]); err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	return raw, nil
}

// take removes the value at a path of object keys.
func take(raw json.RawMessage, path []string) (rest, value json.RawMessage, err error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, nil, err
	}
	inner, ok := fields[path[0]]
	if !ok {
		return raw, nil, nil
	}
	if len(path) == 1 {
		delete(fields, path[0])
		rest, err = json.Marshal(fields)
		return rest, inner, err
	}
	if fields[path[0]], value, err = take(inner, path[1:]); err != nil || value == nil {
		return raw, nil, err
	}
	rest, err = json.Marshal(fields)
	return rest, value, err
}

// put sets the value at a path. Where the object around it is gone, the value is too.
func put(raw json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if fields == nil { // null
		return raw, nil
	}
	if len(path) == 1 {
		fields[path[0]] = value
		return json.Marshal(fields)
	}
	inner, ok := fields[path[0]]
	if !ok {
		return raw, nil
	}
	changed, err := put(inner, path[1:], value)
	if err != nil {
		return nil, err
	}
	fields[path[0]] = changed
	return json.Marshal(fields)
}
