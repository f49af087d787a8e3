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
	before, wasList := children(from)
	after, isList := children(to)
	switch {
	case reflect.DeepEqual(from, to):
		return nil
	case before == nil, after == nil, wasList != isList, isList && len(before) != len(after),
		before["name"] != after["name"]: // another container
		return []write.Op{write.Replace(path, to)}
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
}

// children returns the fields of an object, or the elements of a list by their index; nil for neither.
func children(value any) (all map[string]any, list bool) {
	elements, list := value.([]any)
	if !list {
		all, _ = value.(map[string]any)
		return all, false
	}
	all = map[string]any{}
	for k, element := range elements {
		all[strconv.Itoa(k)] = element
	}
	return all, true
}
