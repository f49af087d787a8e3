package roundtrip

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
)

// change is one value that a version cannot hold.
type change struct {
	// Path is a JSON pointer, within a list relative to the list.
	Path string `json:"path"`
	// Was is the fingerprint of the value that the copy has in its place, empty when it has none.
	// A value that has changed since is the user's, and stays.
	Was string `json:"was,omitempty"`
	// Is the kept value; nil when the original has none.
	Is any `json:"is,omitempty"`
	// In are changes inside of a list that is otherwise equal. Was is then the fingerprint of the list.
	In []change `json:"in,omitempty"`
}

// diff lists what turns was into is. A nil value is as good as none.
func diff(path string, was, is map[string]any) []change {
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	var changes []change
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		changes = append(changes, diffValue(path+"/"+escape(key), was[key], is[key])...)
	}
	return changes
}

func diffValue(path string, was, is any) []change {
	switch w := was.(type) {
	case map[string]any:
		if i, ok := is.(map[string]any); ok {
			return diff(path, w, i)
		}
	case []any:
		if i, ok := is.([]any); ok && len(i) == len(w) {
			return diffList(path, w, i)
		}
	}
	before := fingerprint(was)
	if before == fingerprint(is) {
		return nil
	}
	return []change{{Path: path, Was: before, Is: is}}
}

func diffList(path string, was, is []any) []change {
	var in []change
	for i := range was {
		in = append(in, diffValue("/"+strconv.Itoa(i), was[i], is[i])...)
	}
	if len(in) == 0 {
		return nil
	}
	return []change{{Path: path, Was: fingerprint(was), In: in}}
}

// each calls do with the path of each change, with those inside of lists.
func each(prefix string, changes []change, do func(path string)) {
	for _, c := range changes {
		if len(c.In) == 0 {
			do(prefix + c.Path)
		}
		each(prefix+c.Path, c.In, do)
	}
}

// within reports whether each change is at the path of a change in outer, or below one.
func within(changes, outer []change) bool {
	paths := map[string]bool{}
	each("", outer, func(path string) { paths[path] = true })
	all := true
	each("", changes, func(path string) {
		for path != "" && !paths[path] {
			path = path[:strings.LastIndex(path, "/")]
		}
		all = all && path != ""
	})
	return all
}

// apply makes the changes in root, each only where the value is still what it was.
func apply(root any, changes []change) {
	for _, c := range changes {
		tokens := strings.Split(strings.TrimPrefix(c.Path, "/"), "/")
		parent := root
		for _, token := range tokens[:len(tokens)-1] {
			parent = child(parent, unescape(token))
		}
		applyTo(parent, unescape(tokens[len(tokens)-1]), c)
	}
}

func applyTo(parent any, key string, c change) {
	now := child(parent, key)
	if fingerprint(now) != c.Was {
		return
	}
	if c.In != nil {
		apply(now, c.In)
		return
	}
	switch p := parent.(type) {
	case map[string]any:
		if c.Is == nil {
			delete(p, key)
			return
		}
		p[key] = c.Is
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(p) {
			p[i] = c.Is
		}
	}
}

// child is the value under key of an object or a list, nil if there is none.
func child(parent any, key string) any {
	switch p := parent.(type) {
	case map[string]any:
		return p[key]
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(p) {
			return p[i]
		}
	}
	return nil
}

// fingerprint distinguishes two JSON values; empty for none.
func fingerprint(v any) string {
	if v == nil {
		return ""
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "unreadable"
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

func escape(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}

func unescape(s string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
}
