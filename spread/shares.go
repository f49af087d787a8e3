package spread

import (
	"cmp"
	"slices"
)

// byShares gives each subset its share, and divides the rest evenly among the subsets without one.
func (p *division) byShares() {
	given, free := p.shares()
	numbers := make([]int64, len(p.in.Subsets))
	sum := int64(0)
	for i, value := range given {
		numbers[i] = value
		sum += value
	}
	switch total := p.total(); {
	case p.in.Replicas == nil && len(free) > 0:
		p.blocked(NoteReplicasMismatch, "", "the number of all replicas must be set, because not every subset has a share")
		for _, i := range free {
			numbers[i] = int64(max(p.in.Subsets[i].Current, 0))
		}
	case p.in.Replicas == nil:
	case sum > total:
		p.blocked(NoteReplicasMismatch, "", "the shares of the subsets are %d replicas, and %d are wanted", sum, total)
		for i := range numbers {
			numbers[i] = min(numbers[i], total)
			total -= numbers[i]
		}
	case sum < total && len(free) == 0 && len(numbers) > 0:
		p.blocked(NoteReplicasMismatch, "", "the shares of the subsets are %d replicas, and %d are wanted", sum, total)
		p.divide(total-sum, p.all(), numbers)
	case len(numbers) == 0:
		p.noRoom(total)
	default:
		p.divide(total-sum, free, numbers)
	}
	for i, n := range numbers {
		p.result.Replicas[i] = int32(min(n, unlimited))
	}
}

// all are the indexes of all subsets.
func (p *division) all() []int {
	indexes := make([]int, len(p.in.Subsets))
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}

// divide adds the rest to some subsets, evenly. The subsets with the most replicas get what is left over, so that few
// replicas move.
func (p *division) divide(rest int64, among []int, numbers []int64) {
	if len(among) == 0 {
		return
	}
	order := slices.Clone(among)
	slices.SortFunc(order, func(a, b int) int {
		x, y := &p.in.Subsets[a], &p.in.Subsets[b]
		return cmp.Or(cmp.Compare(y.Current, x.Current), cmp.Compare(y.Name, x.Name), cmp.Compare(b, a))
	})
	average, over := rest/int64(len(order)), rest%int64(len(order))
	for k, i := range order {
		numbers[i] += average
		if int64(k) < over {
			numbers[i]++
		}
	}
}

// shares returns the share of each subset that has one, and the subsets without.
func (p *division) shares() (given map[int]int64, free []int) {
	given = map[int]int64{}
	amounts := map[int]amount{}
	for i := range p.in.Subsets {
		s := &p.in.Subsets[i]
		if a := p.read(s.Name, "replicas", s.Replicas); a != nil {
			amounts[i] = *a
		} else {
			free = append(free, i)
		}
	}
	total := p.total()
	sum, floors, ceilings := int64(0), int64(0), int64(0)
	for i, a := range amounts {
		given[i] = a.of(total)
		sum += given[i]
		floors += a.floor(total)
		ceilings += a.floor(total)
		if a.remainder(total) > 0 {
			ceilings++
		}
	}
	// Rounding alone must not make a specification impossible: the largest remainders are rounded up then.
	misses := sum > total || sum < total && len(free) == 0
	if p.in.Replicas != nil && misses && floors <= total && (ceilings >= total || len(free) > 0) {
		p.largestRemainders(total, total-floors, amounts, given)
	}
	return given, free
}

// largestRemainders rounds down all percentages but those with the largest remainders, which get the seats that are
// left.
func (p *division) largestRemainders(total, seats int64, amounts map[int]amount, given map[int]int64) {
	order := make([]int, 0, len(amounts))
	for i, a := range amounts {
		given[i] = a.floor(total)
		if a.remainder(total) > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(amounts[b].remainder(total), amounts[a].remainder(total)),
			cmp.Compare(p.in.Subsets[a].Name, p.in.Subsets[b].Name), cmp.Compare(a, b),
		)
	})
	for _, i := range order[:min(int64(len(order)), seats)] {
		given[i]++
	}
}
