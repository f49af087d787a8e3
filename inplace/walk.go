package inplace

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fixed adds every field in which two values differ, with why it cannot change.
func (d *differ) fixed(path string, from, to any) {
	for _, parts := range differing(nil, plain(from), plain(to)) {
		d.block(strings.Join(append([]string{path}, parts...), "."), whyFixed(parts))
	}
}

// plain is a value as JSON has it.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil
	}
	return out
}

// differing returns the paths of the fields in which two values differ. The items of a list are compared by their
// names; a list whose items have none, or another order, differs as a whole.
func differing(at []string, from, to any) [][]string {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	fields, others := byKey(from), byKey(to)
	if fields == nil || others == nil {
		return [][]string{at}
	}
	keys := maps.Clone(fields)
	maps.Copy(keys, others)
	var paths [][]string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := append(slices.Clip(at), key)
		if last := len(at) - 1; strings.HasPrefix(key, "[") && last >= 0 {
			inner = append(slices.Clone(at[:last]), at[last]+key)
		}
		paths = append(paths, differing(inner, fields[key], others[key])...)
	}
	if len(paths) == 0 {
		return [][]string{at}
	}
	return paths
}

// byKey returns the fields of an object, or the items of a list by their names in brackets; nil for neither.
func byKey(value any) map[string]any {
	if object, is := value.(map[string]any); is {
		return object
	}
	list, _ := value.([]any)
	items := make(map[string]any, len(list))
	for _, item := range list {
		object, _ := item.(map[string]any)
		if name, is := object["name"].(string); is {
			items["["+name+"]"] = item
		}
	}
	if len(list) == 0 || len(items) != len(list) {
		return nil
	}
	return items
}
