package scale

import (
	"cmp"
	"iter"
	"slices"
)

// table is a list of standings to be sorted, more than once.
type table struct {
	all         []standing
	rows, spare []row
}

// row names a standing, with the number by which it is sorted.
type row struct {
	number uint64
	of     int
}

func tableOf(all []standing) *table {
	t := &table{all: all, rows: make([]row, len(all)), spare: make([]row, len(all))}
	for i := range all {
		t.rows[i].of = i
	}
	return t
}

func (t *table) at(i int) *standing { return &t.all[t.rows[i].of] }

// sorted are the standings in their order.
func (t *table) sorted() iter.Seq[*standing] {
	return func(yield func(*standing) bool) {
		for i := range t.rows {
			if !yield(t.at(i)) {
				return
			}
		}
	}
}

// keep forgets all rows but the first n.
func (t *table) keep(n int) { t.rows, t.spare = t.rows[:n], t.spare[:n] }

// few rows are sorted sooner by comparing them.
const few = 64

// sort orders by all keys, and then by name. Nearly all is decided by the keys up to the time of readiness. Their
// numbers differ in a few bytes only, and many rows are sorted byte by byte in half the time that comparisons take,
// whose outcome no processor foresees. What is left to the other keys and the name is compared.
func (t *table) sort() {
	if len(t.rows) <= few {
		slices.SortFunc(t.rows, t.compare)
		return
	}
	differ := t.differ()
	for key := keyReadyTime; key >= 0; key-- {
		if differ[key] != 0 {
			t.sortBy(key, differ[key])
		}
	}
	for from := 0; from < len(t.rows); {
		to := from + 1
		for to < len(t.rows) && t.at(from).decides(t.at(to)) > keyReadyTime {
			to++
		}
		slices.SortFunc(t.rows[from:to], t.compare)
		from = to
	}
}

func (t *table) compare(a, b row) int {
	x, y := &t.all[a.of], &t.all[b.of]
	if key := x.decides(y); key < keys {
		return cmp.Compare(x.keys[key], y.keys[key])
	}
	return cmp.Compare(x.Name, y.Name)
}

// differ has, for each key, the bits that are not the same in all standings.
func (t *table) differ() (bits [keys]uint64) {
	for i := range t.all {
		for key, k := range t.all[i].keys {
			bits[key] |= uint64(k ^ t.all[0].keys[key])
		}
	}
	return bits
}

// sortBy sorts by one key, of which some bits differ, and keeps the order where it is the same: by byte after byte, the
// last first.
func (t *table) sortBy(key int, differ uint64) {
	for i := range t.rows {
		t.rows[i].number = uint64(t.at(i).keys[key]) ^ 1<<63 // without a sign, in the same order
	}
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) != 0 {
			t.sortByByte(shift)
		}
	}
}

func (t *table) sortByByte(shift int) {
	var next [256]int // place of a row with that byte
	for _, r := range t.rows {
		next[byte(r.number>>shift)]++
	}
	sum := 0
	for i, n := range next {
		next[i], sum = sum, sum+n
	}
	for _, r := range t.rows {
		at := &next[byte(r.number>>shift)]
		t.spare[*at] = r
		*at++
	}
	t.rows, t.spare = t.spare, t.rows
}
