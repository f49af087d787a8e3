//go:build race

package inplace_test

// fewer divides the number of random cases: the race detector makes each ten times as dear.
const fewer = 10
