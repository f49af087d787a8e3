//go:build !race

package inplace_test

const divisor = 4
