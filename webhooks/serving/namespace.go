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
	objects           = ".request.objects[]"
)

// namespaceOf returns the namespace of a review by the beginning of its body, or nothing. API servers write the
// namespace before the object.
func namespaceOf(beginning []byte) string {
	tokens := json.NewDecoder(bytes.NewReader(beginning))
	for p := (place{}); ; {
		token, err := tokens.Token()
		if err != nil || !p.move(token) {
			return ""
		}
		text, is := token.(string)
		if is && !p.key && p.isNamespace() {
			return text
		}
	}
}

// place is where a token is in a body.
type place struct {
	// levels are the containers around the token, and path is that of the token.
	levels []level
	path   string
	// key reports whether the token is a key of an object.
	key bool
}

// level is a container. In an object, a key comes next or a value.
type level struct {
	path        string
	list, value bool
}

// move goes on to a token. It reports whether a namespace may follow.
func (p *place) move(token json.Token) bool {
	top := len(p.levels) - 1
	switch token {
	case json.Delim('{'), json.Delim('['):
		p.enter(token == json.Delim('['))
		return true
	case json.Delim('}'), json.Delim(']'):
		ended := p.levels[top].path
		p.levels, p.key = p.levels[:top], false
		return ended != objects // of the first object alone
	}
	if top < 0 {
		return false
	}
	in := &p.levels[top]
	text, is := token.(string)
	p.key = is && !in.list && !in.value
	in.value = p.key
	if p.key {
		p.path = in.path + "." + text
	}
	return p.path != object && p.path != oldObject
}

// enter goes into an object or a list.
func (p *place) enter(list bool) {
	if top := len(p.levels) - 1; top >= 0 {
		p.levels[top].value = false
		if p.levels[top].list {
			p.path = p.levels[top].path
		}
	}
	if list {
		p.path += "[]"
	}
	p.levels, p.key = append(p.levels, level{path: p.path, list: list}), false
}

// isNamespace reports whether a string here is the namespace of a review.
func (p *place) isNamespace() bool {
	list := len(p.levels) > 0 && p.levels[len(p.levels)-1].list
	return !list && (p.path == ofRequest || p.path == ofObject)
}
