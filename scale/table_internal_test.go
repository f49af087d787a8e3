package scale

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"
)

// TestTableSorts compares with sorting by comparisons alone, below and above the number of rows from which bytes are
// sorted.
func TestTableSorts(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewSource(seed))
	odd := []int64{0, 0, 1, -1, 255, 256, -256, 1 << 40, math.MinInt64, math.MaxInt64}
	for _, n := range []int{0, 1, 2, few, few + 1, 100, 1000} {
		for range 20 {
			all, names := make([]standing, n), r.Perm(n)
			for i := range all {
				all[i].member = &member{Instance: &Instance{Name: fmt.Sprint(names[i])}}
				for _, key := range r.Perm(keys)[:r.Intn(keys)] {
					all[i].keys[key] = odd[r.Intn(len(odd))]
				}
			}
			sorted := tableOf(all)
			sorted.sort()
			compared := tableOf(all)
			slices.SortFunc(compared.rows, compared.compare)
			if !slices.Equal(slices.Collect(sorted.sorted()), slices.Collect(compared.sorted())) {
				t.Fatalf("seed %d: %d rows are in another order than by comparisons", seed, n)
			}
		}
	}
}

// TestTableSortsAgain sorts by a key that has changed, with some rows forgotten.
func TestTableSortsAgain(t *testing.T) {
	all := make([]standing, 3*few)
	for i := range all {
		all[i].member = &member{Instance: &Instance{Name: fmt.Sprintf("%03d", i)}}
		all[i].keys[keyStays] = int64(i % 3)
	}
	table := tableOf(all)
	table.sort()
	table.keep(2 * few) // those that are left over from 3 by 0 and 1
	for s := range table.sorted() {
		s.keys[keyStays] = -s.keys[keyStays]
	}
	table.sort()
	if first, last := table.at(0).Name, table.at(2*few-1).Name; first != "001" || last != fmt.Sprintf("%03d", 3*few-3) {
		t.Errorf("from %s to %s", first, last)
	}
}
