package ordinals_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/internal/ordinals"
)

func items(all ...any) []intstr.IntOrString {
	var list []intstr.IntOrString
	for _, item := range all {
		switch item := item.(type) {
		case int:
			list = append(list, intstr.FromInt32(int32(item)))
		case string:
			list = append(list, intstr.FromString(item))
		}
	}
	return list
}

func parse(t testing.TB, list []intstr.IntOrString) ordinals.Set {
	t.Helper()
	set, err := ordinals.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestWindow(t *testing.T) {
	for name, test := range map[string]struct {
		why             string
		start, replicas int32
		reserved        []intstr.IntOrString
		want            []int32
	}{
		"plain":    {"ordinals begin at 0", 0, 3, nil, []int32{0, 1, 2}},
		"reserved": {"a reserved ordinal is passed over", 0, 4, items(1, 3), []int32{0, 2, 4, 5}},
		"from a start": {
			why:      "a reserved ordinal before the start does not matter",
			start:    2,
			replicas: 4,
			reserved: items(1, 3),
			want:     []int32{2, 4, 5, 6},
		},
		"reserved before":   {"no reserved ordinal is in the window", 4, 4, items(1, 3), []int32{4, 5, 6, 7}},
		"range":             {"a range is closed", 0, 3, items(0, "2-5"), []int32{1, 6, 7}},
		"start in a range":  {"the window begins after the range", 3, 2, items("2-5"), []int32{6, 7}},
		"start is reserved": {"the window begins after it", 1, 4, items(1, 3, 4), []int32{2, 5, 6, 7}},
		"leading zeros":     {"they do not matter", 0, 3, items("0003-005", "1-1"), []int32{0, 2, 6}},
		"overlaps":          {"they count once", 0, 2, items("1-4", 3, "2-6", "6-7"), []int32{0, 8}},
		"no replicas":       {"the window is empty", 5, 0, items(5), nil},
		"negative":          {"a negative number is 0", -3, 2, nil, []int32{0, 1}},
		"negative replicas": {"the window is empty", 0, -1, nil, nil},
		"the end of ordinals": {
			why:      "no ordinal is above the largest",
			start:    math.MaxInt32 - 1,
			replicas: 5,
			want:     []int32{math.MaxInt32 - 1, math.MaxInt32},
		},
		"a huge range":           {"it costs no more than a small one", 0, 2, items("1-2000000000"), []int32{0, 2000000001}},
		"a range beyond the end": {"it reserves all that follow", 0, 5, items("2-99999999999999999999"), []int32{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := ordinals.Window{Start: test.start, Replicas: test.replicas, Reserved: parse(t, test.reserved)}
			if diff := cmp.Diff(test.want, slices.Collect(w.All())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	for _, item := range []any{
		"5-2", "a-b", "3", "", "-", "-1", "1-", "-1-2", "1--2", "+1-2", " 1-2", "1-2-3", "１-２", -1,
	} {
		set, err := ordinals.Parse(items(7, item))
		var invalid *ordinals.ItemError
		if !errors.As(err, &invalid) || invalid.Index != 1 || invalid.Reason == "" || set.Contains(7) {
			t.Errorf("%v: %v", item, err)
		}
	}
}

// TestAgainstOracle compares windows with a walk over a map, as the laws say.
func TestAgainstOracle(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		var list []intstr.IntOrString
		reserved := map[int32]bool{}
		for range random.IntN(6) {
			first := random.IntN(30)
			if random.IntN(2) == 0 {
				list, reserved[int32(first)] = append(list, items(first)...), true
				continue
			}
			last := first + random.IntN(8)
			list = append(list, items(fmt.Sprintf("%d-%d", first, last))...)
			for o := first; o <= last; o++ {
				reserved[int32(o)] = true
			}
		}
		w := ordinals.Window{Start: int32(random.IntN(20)), Replicas: int32(random.IntN(12)), Reserved: parse(t, list)}
		var want []int32
		for o := w.Start; int32(len(want)) < w.Replicas; o++ {
			if !reserved[o] {
				want = append(want, o)
			}
		}
		got := slices.Collect(w.All())
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: %v from %d without %v is %v, want %v", seed, w.Replicas, w.Start, list, got, want)
		}
		check(t, w, want)
		if t.Failed() {
			t.Fatalf("seed %d: %v from %d without %v", seed, w.Replicas, w.Start, list)
		}
	}
}

// check compares what a window says of single ordinals with the list of all.
func check(t *testing.T, w ordinals.Window, want []int32) {
	t.Helper()
	for o := range int32(60) {
		rank, contained := w.Rank(o)
		below := slices.IndexFunc(append(slices.Clone(want), math.MaxInt32), func(other int32) bool { return other >= o })
		if contained != slices.Contains(want, o) || int(rank) != below || w.Contains(o) != contained {
			t.Errorf("the rank of %d is %d, %t; want %d", o, rank, contained, below)
		}
	}
}

func TestHugeWindow(t *testing.T) {
	w := ordinals.Window{Start: 10, Replicas: math.MaxInt32, Reserved: parse(t, items("20-1000000000", math.MaxInt32))}
	if rank, ok := w.Rank(1_000_000_001); !ok || rank != 10 {
		t.Errorf("the rank of the ordinal after the range is %d, %t", rank, ok)
	}
	if rank, ok := w.Rank(math.MaxInt32 - 1); !ok || rank != math.MaxInt32-1-1_000_000_000+9 {
		t.Errorf("the rank of the last free ordinal is %d, %t", rank, ok)
	}
	if rank, ok := w.Rank(math.MaxInt32); ok || rank != math.MaxInt32-1_000_000_000+9 {
		t.Errorf("the rank of a reserved ordinal is %d, %t", rank, ok)
	}
	if cost := testing.AllocsPerRun(10, func() { w.Rank(1 << 30) }); cost > 0 {
		t.Errorf("%g allocations", cost)
	}
}

func TestNames(t *testing.T) {
	for pod, want := range map[string]struct {
		set     string
		ordinal int32
		ok      bool
	}{
		"web-0": {"web", 0, true}, "web-db-12": {"web-db", 12, true}, "web-2147483647": {"web", math.MaxInt32, true},
		"web-2147483648": {}, "web-03": {}, "web-": {}, "web": {}, "-1": {}, "web-a": {}, "web--1": {"web-", 1, true},
		"web-+1": {}, "": {},
	} {
		set, ordinal, ok := ordinals.Split(pod)
		if set != want.set || ordinal != want.ordinal || ok != want.ok {
			t.Errorf("%q is %q, %d, %t", pod, set, ordinal, ok)
		}
		if ok && ordinals.Name(set, ordinal) != pod {
			t.Errorf("%q and %d are not %q", set, ordinal, pod)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("3-5", "0-2147483647")
	f.Add("", "9-1")
	f.Fuzz(func(t *testing.T, a, b string) {
		set, err := ordinals.Parse(items(a, b))
		if err != nil && set.Contains(0) {
			t.Error("a set with an error is not empty")
		}
		w := ordinals.Window{Replicas: 3, Reserved: set}
		for o := range w.All() {
			if rank, ok := w.Rank(o); !ok || rank > 2 {
				t.Errorf("%q, %q: %d has rank %d, %t", a, b, o, rank, ok)
			}
		}
	})
}

func ExampleParse() {
	reserved, err := ordinals.Parse([]intstr.IntOrString{intstr.FromInt32(0), intstr.FromString("2-5")})
	fmt.Println(reserved.Contains(3), err)
	_, err = ordinals.Parse([]intstr.IntOrString{intstr.FromString("5-2")})
	fmt.Println(err)
	// Output:
	// true <nil>
	// item 0, "5-2": must be a range whose first number is not above its second
}

func ExampleWindow_All() {
	reserved, err := ordinals.Parse([]intstr.IntOrString{intstr.FromInt32(1)})
	if err != nil {
		panic(err)
	}
	for ordinal := range (ordinals.Window{Replicas: 3, Reserved: reserved}).All() {
		fmt.Println(ordinals.Name("web", ordinal))
	}
	// Output:
	// web-0
	// web-2
	// web-3
}
