package write

import (
	"cmp"
	"fmt"
)

// CompareVersions compares resource versions of one object, or of objects of one resource: -1 if a is older than b, 0
// if they are equal, 1 if a is newer. A version that is not a positive decimal number without leading zeros, as API
// servers with a store of their own may have, is an error.
//
// Package resourceversion of apimachinery 0.35 has such a function; this one is for those who use an older one.
func CompareVersions(a, b string) (int, error) {
	for _, v := range []string{a, b} {
		if !isNumber(v) {
			return 0, fmt.Errorf("resource version %q is not a positive decimal number", v)
		}
	}
	if order := cmp.Compare(len(a), len(b)); order != 0 {
		return order, nil
	}
	return cmp.Compare(a, b), nil
}

func isNumber(version string) bool {
	if version == "" || version[0] == '0' {
		return false
	}
	for _, c := range []byte(version) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
