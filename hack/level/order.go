package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// durations are the seconds that each package took when its tests ran last, by directory. They live in the cache.
type durations map[string]float64

func durationsFile(level string) (string, error) {
	cache, err := binaries.Open()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache.Dir, "durations", level+".json"), nil
}

// readDurations returns the durations of the last runs, none where no run has left any.
func readDurations(path string) durations {
	d := durations{}
	content, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(content, &d) != nil || d == nil {
		return durations{}
	}
	return d
}

// order sorts directories so that the longest come first: a long package that starts last keeps one core busy while the
// others are idle. A package without a duration is new, and comes before all others.
func (d durations) order(dirs []string) {
	slices.SortStableFunc(dirs, func(a, b string) int {
		x, known := d[a]
		y, also := d[b]
		switch {
		case known && also:
			return cmp.Compare(y, x)
		case known:
			return 1
		case also:
			return -1
		}
		return 0
	})
}

// add takes over what a report knows. A cached result has no duration.
func (d durations) add(r *report) {
	for _, p := range r.packages {
		if !p.cached && !p.failed {
			d["./"+strings.TrimPrefix(p.name, module)] = p.seconds
		}
	}
}

func (d durations) write(path string) error {
	content, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("write durations: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write durations: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write durations: %w", err)
	}
	return nil
}
