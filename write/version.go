package write

import (
	"cmp"
	"fmt"
	"strconv"
)

// CompareVersions compares resource versions of one object, or of objects of one resource: -1 if a is older than b, 0
// if they are equal, 1 if a is newer. A version that is not a decimal number of 64 bits, as API servers with a
// store of their own may have, is an error.
//
// Package resourceversion of apimachinery 0.35 has such a function; this one is for those who use an older one.
func CompareVersions(a, b string) (int, error) {
	x, err := strconv.ParseUint(a, 10, 64)
	y, failed := strconv.ParseUint(b, 10, 64)
	if err != nil || failed != nil {
		return 0, fmt.Errorf("resource version %q or %q is not a decimal number", a, b)
	}
	return cmp.Compare(x, y), nil
}
