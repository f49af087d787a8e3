package imagepull

import (
	"cmp"
	"math"
	"strings"

	"github.com/kruisekit/kruisekit/imagepull"
)

// turns says which of the pulls that wait may begin: how many at once, of them of one registry, and of one namespace.
type turns struct {
	all, perRegistry, perNamespace int
}

// newTurns leaves one place to other registries and namespaces, if there are three or more.
func newTurns(maxPulls int) turns {
	all := cmp.Or(maxPulls, defaultMaxPulls)
	if all < 0 {
		all = math.MaxInt
	}
	share := max(all-1, 2)
	return turns{all: all, perRegistry: share, perNamespace: share}
}

// load counts the attempts under way.
type load struct {
	all                    int
	registries, namespaces map[string]int
}

func newLoad() load { return load{registries: map[string]int{}, namespaces: map[string]int{}} }

func (l *load) add(registry, namespace string) {
	l.all++
	l.registries[registry]++
	if namespace != "" {
		l.namespaces[namespace]++
	}
}

// payer returns the namespace that an attempt for a tag counts for: of those that asked for it, the one with the fewest
// under way. It is empty for a tag that no job asked for, which counts for none.
func (l *load) payer(j *job) string {
	best := ""
	for _, namespace := range imagepull.Namespaces(j.Tag) {
		if best == "" || l.namespaces[namespace] < l.namespaces[best] {
			best = namespace
		}
	}
	return best
}

// next returns the place in ready of the pull that may begin, or -1. It is one whose namespace is the least busy, of
// those one whose registry is, and of those the one that has waited longest: neither a namespace nor a registry with
// many images goes before one with few.
func (t turns) next(ready []*job, l load) int {
	best := -1
	if l.all >= t.all {
		return best
	}
	for i, j := range ready {
		if l.registries[j.registry] >= t.perRegistry || l.namespaces[l.payer(j)] >= t.perNamespace {
			continue
		}
		if best < 0 || l.compare(j, ready[best]) < 0 {
			best = i
		}
	}
	return best
}

func (l *load) compare(a, b *job) int {
	return cmp.Or(
		cmp.Compare(l.namespaces[l.payer(a)], l.namespaces[l.payer(b)]),
		cmp.Compare(l.registries[a.registry], l.registries[b.registry]),
		cmp.Compare(a.place, b.place),
	)
}

// registryOf an image: host and port.
func registryOf(ref imagepull.Reference) string {
	host, _, _ := strings.Cut(ref.Repository(), "/")
	return host
}
