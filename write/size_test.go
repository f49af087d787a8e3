package write_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/write"
)

func FuzzEncodedLen(f *testing.F) {
	for b := range 128 {
		f.Add(string(rune(b)))
	}
	for _, text := range []string{"", "plain", `{"a":"<b>"}`, "\u2028\u2029\ufffd", "ünïcode 漢字 🙂"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\ufffd")
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := write.EncodedLen(text); got != len(encoded) {
			t.Errorf("%q takes %d bytes, not %d: %s", text, len(encoded), got, encoded)
		}
	})
}
