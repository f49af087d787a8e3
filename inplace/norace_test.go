//go:build !race

package inplace_test

const fewer = 1
