package write_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/write"
)

func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1", "1", 0},
		{"9", "10", -1},
		{"10", "9", 1},
		{"12", "21", -1},
	} {
		if got, err := write.CompareVersions(c.a, c.b); err != nil || got != c.want {
			t.Errorf("%s and %s: %d, %v; want %d", c.a, c.b, got, err, c.want)
		}
	}
	for _, v := range []string{"", "-1", "+1", "1a", "a", " 1", "1.0", "٣", "123456789012345678901234567890"} {
		for _, pair := range [][2]string{{v, "1"}, {"1", v}} {
			if got, err := write.CompareVersions(pair[0], pair[1]); err == nil {
				t.Errorf("%q and %q: %d, want an error", pair[0], pair[1], got)
			}
		}
	}
}
