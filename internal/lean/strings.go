package lean

import (
	"reflect"
	"strings"
	"sync"
)

// Strings shares equal texts between objects: pods repeat names, labels, images, conditions and owners of others, and
// each decoder makes its own copy. It is bounded, and safe for concurrent use. The zero value is empty.
type Strings struct {
	mu   sync.Mutex
	seen map[string]string
}

const (
	// longest text that is shared; longer ones rarely repeat.
	longest = 256
	// mostStrings bounds the table, which is emptied beyond it. What is shared stays shared.
	mostStrings = 1 << 16
)

// Share replaces the texts of an object, which pointer points to, by equal ones of other objects.
func (s *Strings) Share(pointer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share(reflect.ValueOf(pointer).Elem())
}

func (s *Strings) share(v reflect.Value) {
	switch v.Kind() { // of others none is a text
	case reflect.String:
		if n := v.Len(); n > 0 && n <= longest && v.CanSet() {
			v.SetString(s.one(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			s.share(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				s.share(f)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				s.share(v.Index(i))
			}
		}
	case reflect.Map:
		s.shareMap(v)
	}
}

// shareMap replaces the keys, and the values that are texts, of a map of labels, annotations or amounts.
func (s *Strings) shareMap(v reflect.Value) {
	if v.Len() == 0 || v.Type().Key().Kind() != reflect.String {
		return
	}
	shared := reflect.MakeMapWithSize(v.Type(), v.Len())
	for at := v.MapRange(); at.Next(); {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.Set(at.Key())
		value.Set(at.Value())
		s.share(key)
		s.share(value)
		shared.SetMapIndex(key, value)
	}
	v.Set(shared)
}

func (s *Strings) one(text string) string {
	if known, is := s.seen[text]; is {
		return known
	}
	if s.seen == nil || len(s.seen) >= mostStrings {
		s.seen = map[string]string{}
	}
	text = strings.Clone(text) // it may be a part of a longer one
	s.seen[text] = text
	return text
}
