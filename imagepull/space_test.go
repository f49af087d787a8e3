package imagepull_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/imagepull"
)

func TestMeasure(t *testing.T) {
	const bytesText, inodesText = "less than 17% of the image file system is free",
		"less than 17% of the inodes of the image file system are free"
	bytes := func(capacity, available uint64) imagepull.Space {
		return imagepull.Space{Capacity: capacity, Available: available}
	}
	for why, test := range map[string]struct {
		least  int
		spaces []imagepull.Space
		want   imagepull.Headroom
	}{
		"far from the bound pulls run": {17, list(bytes(1000, 220)), imagepull.Headroom{FreePercent: 22}},
		"close to the bound pulls are scarce": {
			17, list(bytes(1000, 219)), imagepull.Headroom{FreePercent: 21, Scarce: true},
		},
		"at the bound too": {
			17, list(bytes(1000, 170)), imagepull.Headroom{FreePercent: 17, Scarce: true},
		},
		"a byte below the bound none runs": {
			17, list(bytes(1000, 169)), imagepull.Headroom{FreePercent: 16, Shortage: bytesText},
		},
		"a full file system": {17, list(bytes(1000, 0)), imagepull.Headroom{Shortage: bytesText}},
		"inodes run out before bytes do": {
			17, list(imagepull.Space{Capacity: 9, Available: 9, Inodes: 100, FreeInodes: 3}),
			imagepull.Headroom{FreePercent: 3, Shortage: inodesText},
		},
		"no bound of inodes is no shortage": {
			17, list(imagepull.Space{Capacity: 100, Available: 90}), imagepull.Headroom{FreePercent: 90},
		},
		"the fullest file system counts": {
			17, list(bytes(100, 90), bytes(100, 5), bytes(100, 40)), imagepull.Headroom{FreePercent: 5, Shortage: bytesText},
		},
		"nothing known bounds nothing":           {17, nil, imagepull.Headroom{FreePercent: 100}},
		"no size bounds nothing":                 {17, list(imagepull.Space{}), imagepull.Headroom{FreePercent: 100}},
		"without a bound a full one is no bound": {0, list(bytes(1000, 0)), imagepull.Headroom{}},
		"a negative bound is none":               {-1, list(bytes(1000, 0)), imagepull.Headroom{}},
		"a bound above all is all": {
			1000, list(bytes(1000, 999)),
			imagepull.Headroom{FreePercent: 99, Shortage: "less than 100% of the image file system is free"},
		},
		"an empty file system is never short": {1000, list(bytes(1000, 1000)), imagepull.Headroom{FreePercent: 100}},
		"more available than there is":        {17, list(bytes(1, 1000)), imagepull.Headroom{FreePercent: 100}},
		"a size beyond all disks does not wrap": {
			17, list(bytes(math.MaxUint64, math.MaxUint64/10)), imagepull.Headroom{FreePercent: 9, Shortage: bytesText},
		},
	} {
		if diff := cmp.Diff(test.want, imagepull.Measure(test.least, test.spaces...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}

// Measure agrees with exact arithmetic, whatever the order of the file systems, and less free space never allows more.
func TestMeasureLaws(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	size := func() uint64 { return r.Uint64() >> r.Intn(64) }
	for range 20000 {
		least := r.Intn(110) - 5
		var spaces []imagepull.Space
		for range r.Intn(4) {
			spaces = append(spaces, imagepull.Space{Capacity: size(), Available: size(), Inodes: size(), FreeInodes: size()})
		}
		got := imagepull.Measure(least, spaces...)
		if free, short := exact(least, spaces); got.FreePercent != free || (got.Shortage != "") != short ||
			short && got.Scarce {
			t.Fatalf("seed %d: %d%% of %+v: %+v, want %d%% free, short %t", seed, least, spaces, got, free, short)
		}
		r.Shuffle(len(spaces), func(i, j int) { spaces[i], spaces[j] = spaces[j], spaces[i] })
		if again := imagepull.Measure(least, spaces...); again.FreePercent != got.FreePercent ||
			(again.Shortage == "") != (got.Shortage == "") {
			t.Fatalf("seed %d: %+v in another order, and %+v", seed, again, got)
		}
		for i := range spaces {
			spaces[i].Available /= 2
		}
		if less := imagepull.Measure(least, spaces...); less.Shortage == "" &&
			(got.Shortage != "" || got.Scarce && !less.Scarce) {
			t.Fatalf("seed %d: half as much is free, and %+v becomes %+v", seed, got, less)
		}
	}
}

// exact is what Measure should find, by arithmetic that has no bound.
func exact(least int, spaces []imagepull.Space) (free int, short bool) {
	free = 100
	for _, s := range spaces {
		for _, pair := range [][2]uint64{{s.Available, s.Capacity}, {s.FreeInodes, s.Inodes}} {
			if pair[1] == 0 || pair[0] >= pair[1] {
				continue
			}
			part, whole := new(big.Int).SetUint64(pair[0]), new(big.Int).SetUint64(pair[1])
			part.Mul(part, big.NewInt(100))
			short = short || part.Cmp(new(big.Int).Mul(whole, big.NewInt(int64(min(least, 100))))) < 0
			free = min(free, int(part.Div(part, whole).Int64()))
		}
	}
	return free, short
}

func ExampleMeasure() {
	disk := imagepull.Space{Capacity: 500 << 30, Available: 40 << 30}
	fmt.Println(imagepull.Measure(17, disk).Shortage)
	// Output: less than 17% of the image file system is free
}
