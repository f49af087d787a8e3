package imagepull

import (
	"fmt"
	"math/bits"
)

// scarcePercent is how far above the bound a file system counts as scarce, in percentage points.
const scarcePercent = 5

// Space is the size of a file system in which a node keeps images. A size that is not known is zero.
type Space struct {
	// Capacity is the size in bytes. Available are the bytes that a container runtime may write.
	Capacity, Available uint64
	// Inodes are all inodes, FreeInodes those that no file has. Some file systems have no bound of inodes, and report
	// zero.
	Inodes, FreeInodes uint64
}

// Headroom is what the file systems of images leave for pulls.
type Headroom struct {
	// FreePercent is the free share of bytes or inodes, whichever is less, rounded down. It is 100 where no size is
	// known.
	FreePercent int
	// Shortage is the reason why no pull may run, and empty where pulls may run.
	Shortage string
	// Scarce reports that pulls are close to the bound: each namespace may run one at a time.
	Scarce bool
}

// Measure returns the headroom of file systems of which each keeps the given share free of pulls. The one with the
// least free share counts. A share of zero bounds nothing. The reason of a shortage does not change with the free
// share, so that a status with it needs no further write.
func Measure(minFreePercent int, spaces ...Space) Headroom {
	h, what := Headroom{FreePercent: 100}, ""
	for _, s := range spaces {
		if free := percent(s.Available, s.Capacity); free < h.FreePercent {
			h.FreePercent, what = free, "less than %d%% of the image file system is free"
		}
		if free := percent(s.FreeInodes, s.Inodes); free < h.FreePercent {
			h.FreePercent, what = free, "less than %d%% of the inodes of the image file system are free"
		}
	}
	minFreePercent = min(minFreePercent, 100)
	switch {
	case h.FreePercent < minFreePercent:
		h.Shortage = fmt.Sprintf(what, minFreePercent)
	case minFreePercent > 0:
		h.Scarce = h.FreePercent < minFreePercent+scarcePercent && h.FreePercent < 100
	}
	return h
}

// percent returns a share of a whole in percent, rounded down. All of a whole that is not known is free.
func percent(part, whole uint64) int {
	if part >= whole {
		return 100
	}
	hi, lo := bits.Mul64(part, 100)
	quotient, _ := bits.Div64(hi, lo, whole)
	return int(quotient)
}
