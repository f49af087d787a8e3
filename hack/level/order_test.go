package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		known durations
		want  string
	}{
		"without durations the order stays":           {nil, "./a ./b ./c"},
		"the longest come first":                      {durations{"./a": 1, "./b": 3, "./c": 2}, "./b ./c ./a"},
		"a new package comes before all others":       {durations{"./a": 1, "./b": 3}, "./c ./b ./a"},
		"directories that are gone have no influence": {durations{"./a": 1, "./b": 3, "./c": 2, "./d": 9}, "./b ./c ./a"},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := []string{"./a", "./b", "./c"}
			c.known.order(dirs)
			if got := strings.Join(dirs, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Durations survive a run, whose cached and failed packages leave those of earlier runs.
func TestDurations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "level", "unit.json")
	d := readDurations(path)
	d["./b"], d["./c"] = 7, 8
	r := newReport(&strings.Builder{}, false)
	if err := r.read(strings.NewReader(strings.TrimPrefix(events, "\n"))); err != nil {
		t.Fatal(err)
	}
	d.add(r)
	if err := d.write(path); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(durations{"./b": 7, "./c": 8, "./e": 0}, readDurations(path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
