// Figures prints the numbers that describe how large the house is, and how far the ways in it are, as a Markdown table.
//
//	go run ./hack/figures        # what is counted in seconds
//	go run ./hack/figures -way   # the way of one update in place too, which compiles the library for coverage
//	go run ./hack/figures -json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

// figure is a number, and how it is counted.
type figure struct {
	Name    string `json:"name"`
	Value   int    `json:"value"`
	Counted string `json:"counted"`
}

func main() {
	way := flag.Bool("way", false, "count the files and packages that one update in place passes")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	figures, err := measure(".", *way)
	if err != nil {
		fail(err)
	}
	if *asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(figures); err != nil {
			fail(err)
		}
		return
	}
	fmt.Println("| figure | value | how it is counted |\n|---|---:|---|")
	for _, f := range figures {
		fmt.Printf("| %s | %d | %s |\n", f.Name, f.Value, f.Counted)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "figures:", err)
	os.Exit(2)
}

// house is the module whose figures are measured.
type house struct {
	root     string
	files    []source
	packages []exported.Package
}

// measure returns the figures of the module at root.
func measure(root string, way bool) ([]figure, error) {
	files, err := readTree(root)
	if err != nil {
		return nil, err
	}
	packages, err := exported.List(root, "./...")
	if err != nil {
		return nil, err
	}
	h := house{root, files, packages}
	parts := []func() ([]figure, error){h.surface, h.shape, h.lines, h.controllers}
	if way {
		parts = append(parts, h.way)
	}
	var all []figure
	for _, part := range parts {
		figures, err := part()
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	return all, nil
}
