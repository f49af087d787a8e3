//go:build race

package main

// fewer divides the number of random cases: the race detector makes each six times as slow. Every run draws others.
const fewer = 4
