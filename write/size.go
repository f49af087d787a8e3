package write

import "strings"

// EncodedLen returns how many bytes a text of valid UTF-8 takes in the JSON of an object, with its quotes. API servers
// store custom resources as JSON in which a control character, <, > and & take six bytes: an object may be too large
// for etcd although its texts are not.
func EncodedLen(text string) int {
	n := len(text) + len(`""`)
	for i := range len(text) {
		switch b := text[i]; {
		case strings.IndexByte("\"\\\b\f\n\r\t", b) >= 0:
			n++
		case b < ' ' || b == '<' || b == '>' || b == '&':
			n += len(`\u0000`) - 1
		}
	}
	return n + 3*(strings.Count(text, "\u2028")+strings.Count(text, "\u2029"))
}
