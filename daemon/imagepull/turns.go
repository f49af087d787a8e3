package imagepull

import (
	"math"
	"strings"

	"github.com/kruisekit/kruisekit/imagepull"
)

// turns say who of those that wait may begin.
type turns struct {
	all, perRegistry int
}

func newTurns(o Options) turns {
	t := turns{all: o.MaxPulls, perRegistry: o.MaxPerRegistry}
	if t.all < 0 {
		t.all = math.MaxInt
	}
	if t.perRegistry <= 0 {
		t.perRegistry = max(t.all-1, 2)
	}
	return t
}

// next is the place in ready of the one that may begin, or -1. It is one whose registry is the least busy, of those the
// one that has waited longest, so that a registry with many images does not go before one with few.
func (t turns) next(ready []*job, busy map[string]int) int {
	running, best := 0, -1
	for _, n := range busy {
		running += n
	}
	if running >= t.all {
		return -1
	}
	for i, j := range ready {
		n := busy[j.registry]
		if n >= t.perRegistry {
			continue
		}
		if best < 0 || n < busy[ready[best].registry] || n == busy[ready[best].registry] && j.place < ready[best].place {
			best = i
		}
	}
	return best
}

// registryOf an image: host and port.
func registryOf(ref imagepull.Reference) string {
	host, _, _ := strings.Cut(ref.Repository(), "/")
	return host
}
