// Surface checks what the public packages export. No exported identifier mentions a type of an internal package, which
// an embedder cannot name. The listing shows each change of the public API, and CHANGELOG.md names it.
//
//	go run ./hack/surface         # checks
//	go run ./hack/surface -write  # writes the listing, and removes known breaches that are mended
//
// The listing has one file per public package, with a line per exported identifier, method and field. It has neither
// generated deepcopy methods nor names of parameters. known.txt has the breaches that remain: it only shrinks.
// The program prints one line per finding and exits with 1 if there is any.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

func main() {
	update := flag.Bool("write", false, "write the listing, and remove known breaches that are mended")
	flag.Parse()
	run := check
	if *update {
		run = write
	}
	findings, err := run(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "surface:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	fmt.Printf("surface: %d findings\n", len(findings))
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// check returns what is wrong with the surface of the module at root.
func check(root string) ([]string, error) {
	surfaces, err := exported.Surfaces(root)
	if err != nil {
		return nil, err
	}
	known, err := readKnown(root)
	if err != nil {
		return nil, err
	}
	findings := compareBreaches(breaches(surfaces), known)
	listed, err := readListing(root)
	if err != nil {
		return nil, err
	}
	findings = append(findings, compareListing(listingOf(surfaces), listed)...)
	silent, err := silentChanges(root)
	return append(findings, silent...), err
}

// write brings the listing up to date, and returns the breaches that are not known.
func write(root string) ([]string, error) {
	surfaces, err := exported.Surfaces(root)
	if err != nil {
		return nil, err
	}
	found := breaches(surfaces)
	if err := shrinkKnown(root, found); err != nil {
		return nil, err
	}
	known, err := readKnown(root)
	if err != nil {
		return nil, err
	}
	return compareBreaches(found, known), writeListing(root, listingOf(surfaces))
}
