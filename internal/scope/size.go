package scope

import (
	"strings"
	"time"
)

const (
	// mostLetters of an expression: API servers accept 100,000, and compile this many in a tenth of a second, for which
	// the first pod after each change waits.
	mostLetters = 48 << 10
	// mostClauses of an expression, beside those in lists. API servers compile so many in a few hundredths of a second,
	// and twenty times as many in several seconds: what is more goes into another entry.
	mostClauses = 64
	// mostParts is how many entries the condition of one group may take.
	mostParts = 16
	// mostGroups is how many sets of namespace labels have entries of their own. API servers evaluate each entry for every
	// new pod.
	mostGroups = 24
	// mostNamespaceLetters of the requirements on namespace labels, of which a group has no other form.
	mostNamespaceLetters = 4 << 10
	// mostTuples of values that one clause contributes to a list.
	mostTuples = 64
	// mostBytes of all entries: etcd accepts 1.5 MiB for an object.
	mostBytes = 1 << 20
	// mostEntries in all.
	mostEntries = 64

	// lettersTime and clausesTime are about what API servers take for mostLetters and for mostClauses of an expression.
	lettersTime = 100 * time.Millisecond
	clausesTime = 20 * time.Millisecond
)

// Size is what a scope costs API servers.
type Size struct {
	// Entries are evaluated for each request, and Bytes are stored.
	Entries, Bytes int
	// Clauses are the alternatives of all conditions.
	Clauses int
	// Compile is about how long an API server compiles the conditions after each write.
	Compile time.Duration
}

// Size returns what the entries cost.
func (s *Scope) Size() Size {
	total := Size{Entries: len(s.Entries)}
	for i := range s.Entries {
		total.Bytes += s.Entries[i].Size()
		for _, c := range s.Entries[i].MatchConditions {
			n := strings.Count(c.Expression, " || ") + 1
			total.Clauses += n
			total.Compile += time.Duration(len(c.Expression)) * lettersTime / mostLetters
			total.Compile += time.Duration(n*n) * clausesTime / (mostClauses * mostClauses)
		}
	}
	return total
}

// size bounds the conditions of each group.
type size struct{ parts, letters int }

// sizes returns the bounds that are tried one after the other, until all entries fit into one object. Entries of the
// last ones fit.
func sizes() []size {
	return []size{
		{mostParts, mostLetters}, {mostParts / 4, mostLetters}, {1, mostLetters}, {1, mostLetters / 4}, {1, mostLetters / 16},
	}
}
