//go:build race

package inplace_test

// divisor is larger under the race detector, where each case takes ten times as long.
const divisor = 10
