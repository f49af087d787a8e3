//go:build !race

package inplace_test

// fewer divides the number of random cases. Every run draws others, and make nightly runs them ten times.
const fewer = 4
