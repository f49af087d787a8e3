package ordinals

import (
	"strconv"
	"strings"
)

// Name returns the name of the pod with an ordinal.
func Name(set string, ordinal int32) string {
	return set + "-" + strconv.FormatInt(int64(ordinal), 10)
}

// Split returns the name of the set and the ordinal in the name of a pod, and reports whether the pod can belong to a
// set: web-db-3 is the pod 3 of web-db. The pods web-03 and web-99999999999 belong to no set.
func Split(pod string) (set string, ordinal int32, ok bool) {
	dash := strings.LastIndexByte(pod, '-')
	if dash <= 0 {
		return "", 0, false
	}
	digits := pod[dash+1:]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return "", 0, false
	}
	return pod[:dash], int32(n), true
}
