package inplace

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// fixed adds every field in which two values differ, with why it cannot change.
func (d *differ) fixed(path string, from, to any, inContainer bool) {
	w := walk{found: func(parts []string) {
		whole := strings.Join(append([]string{path}, parts...), ".")
		d.block(whole, whyFixed(parts, inContainer))
	}}
	w.compare(nil, plain(from), plain(to))
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

type walk struct{ found func(parts []string) }

func (w walk) compare(at []string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	switch x := from.(type) {
	case map[string]any:
		if y, ok := to.(map[string]any); ok {
			w.objects(at, x, y)
			return
		}
	case []any:
		if y, ok := to.([]any); ok {
			w.lists(at, x, y)
			return
		}
	}
	w.found(at)
}

func (w walk) objects(at []string, from, to map[string]any) {
	keys := maps.Clone(from)
	maps.Copy(keys, to)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		w.compare(append(slices.Clip(at), key), from[key], to[key])
	}
}

// lists are compared by what names their items; where nothing does, by place.
func (w walk) lists(at []string, from, to []any) {
	x, y, named := byName(from, to)
	if !named {
		for i := range max(len(from), len(to)) {
			w.compare(item(at, strconv.Itoa(i)), place(from, i), place(to, i))
		}
		return
	}
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	same := true
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		same = same && reflect.DeepEqual(x[key], y[key])
		w.compare(item(at, key), x[key], y[key])
	}
	if same { // only the order differs, and it counts
		w.found(at)
	}
}

// item is the path of an item of the list at a path.
func item(at []string, key string) []string {
	if len(at) == 0 {
		return []string{"[" + key + "]"}
	}
	parts := slices.Clone(at)
	parts[len(parts)-1] += "[" + key + "]"
	return parts
}

func place(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// byName gives the items of two lists by what identifies them; false when that is nothing, or not unique.
func byName(from, to []any) (x, y map[string]any, ok bool) {
	for _, key := range []string{
		"name", "mountPath", "devicePath", "containerPort", "topologyKey", "key", "conditionType", "ip", "resourceName",
	} {
		x, y = keyed(from, key), keyed(to, key)
		if len(x) == len(from) && len(y) == len(to) {
			return x, y, true
		}
	}
	return nil, nil, false
}

func keyed(list []any, key string) map[string]any {
	items := make(map[string]any, len(list))
	for _, v := range list {
		object, _ := v.(map[string]any)
		switch name := object[key].(type) {
		case string:
			items[name] = v
		case float64:
			items[strconv.FormatFloat(name, 'f', -1, 64)] = v
		}
	}
	return items
}
