package native

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/kruisekit/kruisekit/write"
)

// difference returns the operations that make a value at a path another one. What both have in common is not written,
// nor is what their types do not know.
func difference(path string, from, to any) []write.Op {
	return differ(path, plain(from), plain(to))
}

func plain(value any) (decoded any) {
	if data, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(data, &decoded) // it is JSON
	}
	return decoded
}

func differ(path string, from, to any) (ops []write.Op) {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	switch before := from.(type) {
	case map[string]any:
		after, is := to.(map[string]any)
		if !is || before["name"] != after["name"] { // another container
			break
		}
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if _, has := after[key]; !has {
				ops = append(ops, write.Remove(path+write.Pointer(key)))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(after)) {
			if old, has := before[key]; has {
				ops = append(ops, differ(path+write.Pointer(key), old, after[key])...)
			} else {
				ops = append(ops, write.Add(path+write.Pointer(key), after[key]))
			}
		}
		return ops
	case []any:
		after, is := to.([]any)
		if !is || len(before) != len(after) {
			break
		}
		for k := range before {
			ops = append(ops, differ(path+"/"+strconv.Itoa(k), before[k], after[k])...)
		}
		return ops
	}
	return []write.Op{write.Replace(path, to)}
}
