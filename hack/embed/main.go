// Embed measures what an operator takes in that imports one package of the library, from outside: for each line of the
// table it makes a module that imports only that package, tidies and builds it, and counts.
//
//	go run ./hack/embed
//
// It also imports all stable packages into a module of an operator that is as old as the floor of versions.
//
// It exits with 1 when a package brings along what it must not, or more than its bound, or raises a version.
package main

import (
	"fmt"
	"os"
)

func main() {
	root, err := os.Getwd()
	if err != nil {
		fail(err)
	}
	failed := false
	for _, b := range budgets() {
		bill, err := measure(root, b.path)
		if err != nil {
			fail(err)
		}
		fmt.Printf("%-18s %s\n", b.path, bill)
		for _, finding := range b.check(bill) {
			failed = true
			fmt.Printf("%-18s   %s\n", "", finding)
		}
	}
	higher, err := raised(root, stable())
	if err != nil {
		fail(err)
	}
	fmt.Printf("an operator on the floor that imports %d packages is raised to %d other versions\n",
		len(stable()), len(higher))
	for _, finding := range higher {
		failed = true
		fmt.Printf("  raises %s\n", finding)
	}
	if failed {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "embed:", err)
	os.Exit(2)
}
