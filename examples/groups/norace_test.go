//go:build !race

package main

const fewer = 1
