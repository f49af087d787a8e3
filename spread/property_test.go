package spread_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/spread"
)

// divisions calls each for all divisions of at most total replicas among n subsets.
func divisions(n int, total int32, each func(division []int32, sum int32)) {
	division := make([]int32, n)
	var fill func(i int, sum int32)
	fill = func(i int, sum int32) {
		if i == n {
			each(division, sum)
			return
		}
		for division[i] = 0; sum+division[i] <= total; division[i]++ {
			fill(i+1, sum+division[i])
		}
		division[i] = 0
	}
	fill(0, 0)
}

// best returns the division that no other one precedes. Divisions that are not allowed have no key.
func best(n int, total int32, key func(division []int32, sum int32) []int32) []int32 {
	var found, keyFound []int32
	divisions(n, total, func(d []int32, sum int32) {
		if k := key(d, sum); k != nil && (found == nil || slices.Compare(k, keyFound) > 0) {
			found, keyFound = slices.Clone(d), k
		}
	})
	return found
}

func draw(r *rand.Rand, most int32) int32 { return r.Int32N(most + 1) }

func number(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }

func abs(n int32) int32 { return max(n, -n) }

// Shares hold, the rest is even, and no even division moves fewer replicas.
func TestSharesAreTheBestDivision(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := spread.Input{Replicas: ptr.To(draw(r, 9)), Subsets: make([]spread.Subset, 1+r.IntN(4))}
		shares := int32(0)
		for i := range in.Subsets {
			s := &in.Subsets[i]
			s.Name, s.Exists, s.Current = string(rune('a'+i)), true, draw(r, 5)
			if i > 0 && r.IntN(3) == 0 {
				share := draw(r, *in.Replicas-shares)
				shares += share
				s.Replicas = number(share)
			}
		}
		got := spread.Allocate(in)
		moves := func(d []int32) (n int32) {
			for i, x := range d {
				n += abs(x - in.Subsets[i].Current)
			}
			return n
		}
		want := best(len(in.Subsets), *in.Replicas, func(d []int32, sum int32) []int32 {
			var free []int32
			for i, x := range d {
				switch s := in.Subsets[i].Replicas; {
				case s == nil:
					free = append(free, x)
				case s.IntVal != x:
					return nil
				}
			}
			if sum != *in.Replicas || slices.Max(free)-slices.Min(free) > 1 {
				return nil
			}
			return []int32{-moves(d)}
		})
		if len(got.Notes) > 0 || moves(got.Replicas) != moves(want) || !allowed(in, got.Replicas) {
			t.Fatalf("seed %d: %+v: got %v, one of the best is %v", seed, in, got, want)
		}
		checkOrder(t, seed, r, in, got)
	}
}

// allowed reports whether the sum and the shares hold, and the rest is even.
func allowed(in spread.Input, d []int32) bool {
	sum, free := int32(0), []int32{}
	for i, x := range d {
		sum += x
		if s := in.Subsets[i].Replicas; s == nil {
			free = append(free, x)
		} else if s.IntVal != x {
			return false
		}
	}
	return sum == *in.Replicas && slices.Max(free)-slices.Min(free) <= 1
}

// checkOrder checks that the order of subsets with shares does not matter.
func checkOrder(t *testing.T, seed uint64, r *rand.Rand, in spread.Input, got spread.Allocation) {
	t.Helper()
	order := r.Perm(len(in.Subsets))
	other := in
	other.Subsets = make([]spread.Subset, len(order))
	want := make([]int32, len(order))
	for to, from := range order {
		other.Subsets[to], want[to] = in.Subsets[from], got.Replicas[from]
	}
	if diff := cmp.Diff(want, spread.Allocate(other).Replicas); diff != "" {
		t.Fatalf("seed %d: in another order (-want +got):\n%s", seed, diff)
	}
}

// Percentages of the whole divide all of it, and each is off by less than one.
func TestPercentagesAddUp(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		in, left := spread.Input{Replicas: ptr.To(draw(r, 50))}, int32(100)
		for i := range 1 + r.IntN(6) {
			share := draw(r, left)
			left -= share
			in.Subsets = append(in.Subsets, spread.Subset{Name: string(rune('a' + i)), Replicas: percent(share)})
		}
		whole := left == 0 || r.IntN(2) == 0
		if whole {
			in.Subsets = append(in.Subsets, spread.Subset{Name: "rest", Replicas: percent(left)})
		} else {
			in.Subsets = append(in.Subsets, spread.Subset{Name: "rest"})
		}
		got, sum := spread.Allocate(in), int32(0)
		for i, n := range got.Replicas {
			sum += n
			if s := in.Subsets[i].Replicas; s != nil {
				share, err := spread.Amount(s, 100)
				if off := n*100 - share**in.Replicas; err != nil || off <= -100 || off >= 100 {
					t.Fatalf("seed %d: %d of %d for %s", seed, n, *in.Replicas, s)
				}
			}
		}
		if sum != *in.Replicas || len(got.Notes) > 0 {
			t.Fatalf("seed %d: %d of %d, %v", seed, sum, *in.Replicas, got.Notes)
		}
		checkOrder(t, seed, r, in, got)
	}
}

func percent(n int32) *intstr.IntOrString {
	v := intstr.FromInt32(n)
	return ptr.To(intstr.FromString(v.String() + "%"))
}

// bounds of a subset after adaptation, written down once more.
func boundsOf(s *spread.Subset, mode spread.Mode) (least, most int32) {
	most = 1000
	if s.MinReplicas != nil {
		least = s.MinReplicas.IntVal
	}
	if s.MaxReplicas != nil {
		most = s.MaxReplicas.IntVal
	}
	if mode == spread.Adaptive {
		switch {
		case s.Exists && s.Unschedulable:
			least = max(least, s.Ready)
			most = max(least, min(s.Ready, most))
		case s.Ready > least:
			least = min(s.Ready, most)
		}
	}
	return least, most
}

func drawBounded(r *rand.Rand, mode spread.Mode) spread.Input {
	in := spread.Input{Mode: mode, Replicas: ptr.To(draw(r, 8)), Subsets: make([]spread.Subset, 1+r.IntN(4))}
	for i := range in.Subsets {
		s := &in.Subsets[i]
		s.Name = string(rune('a' + i))
		s.MinReplicas = number(draw(r, 3))
		if r.IntN(2) == 0 {
			s.MaxReplicas = number(s.MinReplicas.IntVal + draw(r, 3))
		}
		if s.Exists = r.IntN(4) > 0; s.Exists && mode != spread.Fixed {
			s.Current = draw(r, 5)
			s.Unschedulable, s.Marked = r.IntN(3) == 0, r.IntN(3) == 0
			s.Ready = draw(r, s.Current)
			if s.Unschedulable {
				s.Reserved = draw(r, s.Current)
			}
		}
	}
	return in
}

// As many replicas as fit, minima first, and then the first subsets.
func TestBoundsAreTheBestDivision(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := drawBounded(r, []spread.Mode{spread.Fixed, spread.Adaptive}[seed%2])
		got := spread.Allocate(in)
		want := best(len(in.Subsets), *in.Replicas, func(d []int32, sum int32) []int32 {
			met := []int32{sum}
			for i, x := range d {
				least, most := boundsOf(&in.Subsets[i], in.Mode)
				if x > most {
					return nil
				}
				met = append(met, min(x, least))
			}
			return append(met, d...)
		})
		if diff := cmp.Diff(want, got.Replicas); diff != "" {
			t.Fatalf("seed %d: %+v (-want +got):\n%s", seed, in, diff)
		}
		more := in
		more.Replicas = ptr.To(*in.Replicas + 1)
		grown := int32(0)
		for i, n := range spread.Allocate(more).Replicas {
			if n < got.Replicas[i] {
				t.Fatalf("seed %d: %+v: subset %d loses replicas when one more is wanted", seed, in, i)
			}
			grown += n - got.Replicas[i]
		}
		if grown > 1 || grown == 0 && got.Unallocated == 0 && spread.Allocate(more).Unallocated == 0 {
			t.Fatalf("seed %d: %+v: one more replica makes %d", seed, in, grown)
		}
	}
}

// Substitutes are placed one by one, as a person would.
func TestReservingOneByOne(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		in := drawBounded(r, spread.Reserving)
		got := spread.Allocate(in)
		want := oneByOne(in)
		if diff := cmp.Diff(want, got.Replicas); diff != "" {
			t.Fatalf("seed %d: %+v (-want +got):\n%s", seed, in, diff)
		}
		for i, n := range got.Replicas {
			if _, most := boundsOf(&in.Subsets[i], in.Mode); n > most {
				t.Fatalf("seed %d: %+v: %d is above the maximum of subset %d", seed, in, n, i)
			}
		}
	}
}

func oneByOne(in spread.Input) []int32 {
	left := *in.Replicas
	placed, runs := make([]int32, len(in.Subsets)), make([]int32, len(in.Subsets))
	// place adds replicas one by one: those that will run replace a wanted one, the others do not.
	place := func(i int, to int32) {
		s, allowance := &in.Subsets[i], left
		for ; placed[i] < to && allowance > 0; allowance-- {
			placed[i]++
			trusted := !s.Exists || !s.Unschedulable && !s.Marked
			if trusted || placed[i] <= s.Current-s.Reserved {
				runs[i]++
				left--
			}
		}
	}
	for i := range in.Subsets {
		least, _ := boundsOf(&in.Subsets[i], in.Mode)
		place(i, least)
	}
	for i := range in.Subsets {
		s := &in.Subsets[i]
		least, most := boundsOf(s, in.Mode)
		if s.Exists && s.Unschedulable {
			most = min(most, max(least, s.Current))
		}
		place(i, most)
	}
	return placed
}

// Whatever is stored, an allocation comes back, and no number is negative.
func FuzzAllocate(f *testing.F) {
	f.Add(int32(5), "a", "50%", "", "", int32(3), uint8(0))
	f.Add(int32(-5), "a", "", "101%", "-2", int32(-3), uint8(1))
	f.Add(int32(2147483647), "a", "100%", "2147483647", "2147483647", int32(2147483647), uint8(6))
	f.Fuzz(func(t *testing.T, total int32, name, share, least, most string, current int32, flags uint8) {
		s := spread.Subset{
			Name:          name,
			Current:       current,
			Ready:         current,
			Reserved:      current,
			Exists:        flags&1 > 0,
			Unschedulable: flags&2 > 0,
			Marked:        flags&4 > 0,
		}
		for text, into := range map[*string]**intstr.IntOrString{
			&share: &s.Replicas, &least: &s.MinReplicas, &most: &s.MaxReplicas,
		} {
			if *text != "" {
				*into = ptr.To(intstr.Parse(*text))
			}
		}
		for _, mode := range []spread.Mode{spread.Fixed, spread.Adaptive, spread.Reserving, "Other"} {
			in := spread.Input{Replicas: &total, Mode: mode, Subsets: []spread.Subset{s, {Name: "rest"}, s}}
			got := spread.Allocate(in)
			if len(got.Replicas) != 3 || slices.Min(got.Replicas) < 0 || got.Unallocated < 0 {
				t.Fatalf("%+v: %+v", in, got)
			}
		}
	})
}
