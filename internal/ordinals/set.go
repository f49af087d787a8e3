package ordinals

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Set is a set of ordinals. The zero value is empty. It is safe for concurrent use.
type Set struct {
	// intervals are ascending, and at least one ordinal lies between two of them.
	intervals []interval
}

// interval has the ordinals from first to last, and follows before ordinals of the set.
type interval struct{ first, last, before int64 }

// ItemError reports a reserved item that is neither an ordinal nor a range.
type ItemError struct {
	// Index of the item.
	Index int
	// Text of the item.
	Text string
	// Reason is what the item must be.
	Reason string
}

// Error returns the index, the text and the reason.
func (e *ItemError) Error() string {
	return fmt.Sprintf("item %d, %q: %s", e.Index, e.Text, e.Reason)
}

// Parse returns the set of items that are each an ordinal, or a closed range such as "3-5". The error is an *ItemError
// of the first item that is neither, and the set is empty then.
func Parse(items []intstr.IntOrString) (Set, error) {
	all := make([]interval, 0, len(items))
	for i, item := range items {
		parsed, reason := parse(item)
		if reason != "" {
			return Set{}, &ItemError{Index: i, Text: item.String(), Reason: reason}
		}
		all = append(all, parsed)
	}
	return Set{join(all)}, nil
}

func parse(item intstr.IntOrString) (interval, string) {
	if item.Type == intstr.Int {
		if item.IntVal < 0 {
			return interval{}, "must not be negative"
		}
		return interval{first: int64(item.IntVal), last: int64(item.IntVal)}, ""
	}
	from, to, isRange := strings.Cut(item.StrVal, "-")
	first, ok := number(from)
	last, alsoOK := number(to)
	switch {
	case !isRange || !ok || !alsoOK:
		return interval{}, `must be a number, or a range such as "3-5"`
	case first > last:
		return interval{}, "must be a range whose first number is not above its second"
	}
	return interval{first: first, last: last}, ""
}

// number parses decimal digits. No ordinal is above the largest 32-bit integer, so larger numbers stand for it.
func number(digits string) (int64, bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return end, true
	}
	return n, true
}

// join sorts intervals and joins those that meet.
func join(all []interval) []interval {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	joined := all[:0]
	for _, next := range all {
		if n := len(joined); n > 0 && next.first <= joined[n-1].last+1 {
			joined[n-1].last = max(joined[n-1].last, next.last)
			continue
		}
		joined = append(joined, next)
	}
	var before int64
	for i := range joined {
		joined[i].before = before
		before += joined[i].last - joined[i].first + 1
	}
	return joined
}

// Contains reports whether an ordinal is in the set.
func (s Set) Contains(ordinal int32) bool {
	i := s.after(int64(ordinal))
	return i > 0 && int64(ordinal) <= s.intervals[i-1].last
}

// after returns the index of the first interval that begins after an ordinal.
func (s Set) after(ordinal int64) int {
	return sort.Search(len(s.intervals), func(i int) bool { return s.intervals[i].first > ordinal })
}

// below returns how many ordinals of the set are below an ordinal.
func (s Set) below(ordinal int64) int64 {
	i := s.after(ordinal - 1)
	if i == 0 {
		return 0
	}
	in := s.intervals[i-1]
	return in.before + min(in.last, ordinal-1) - in.first + 1
}
