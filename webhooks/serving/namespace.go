package serving

import (
	"bytes"
	"encoding/json"
)

// Where a review has its namespace: an AdmissionReview in the request, a ConversionReview in the first of its objects.
const (
	ofRequest = ".request.namespace"
	ofObject  = ".request.objects[].metadata.namespace"
	// objects come behind the namespace of a request, and their authors decide what is in them.
	object, oldObject = ".request.object", ".request.oldObject"
)

// namespaceOf returns the namespace of a review by the beginning of its body, or nothing. API servers write the
// namespace before the object.
func namespaceOf(beginning []byte) string {
	tokens := json.NewDecoder(bytes.NewReader(beginning))
	// levels are the containers around the next token: the path of each, and what comes next in an object.
	type level struct {
		path         string
		list, values bool
	}
	var levels []level
	path := ""
	for {
		token, err := tokens.Token()
		if err != nil {
			return ""
		}
		top := len(levels) - 1
		if key, is := token.(string); is && top >= 0 && !levels[top].list && !levels[top].values {
			path = levels[top].path + "." + key
			levels[top].values = true
			if path == object || path == oldObject {
				return ""
			}
			continue
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if top >= 0 {
				levels[top].values = false
			}
			if top >= 0 && levels[top].list {
				path = levels[top].path
			}
			list := token == json.Delim('[')
			if list {
				path += "[]"
			}
			levels = append(levels, level{path: path, list: list})
			continue
		case json.Delim('}'), json.Delim(']'):
			if path = levels[top].path; path == ".request.objects[]" {
				return "" // of the first object alone
			}
			levels = levels[:top]
			continue
		}
		if top < 0 {
			return ""
		}
		levels[top].values = false
		if text, is := token.(string); is && !levels[top].list && (path == ofRequest || path == ofObject) {
			return text
		}
	}
}
