// Layers checks what holds the house together and what a linter that sees one file at a time cannot see: which package
// imports which, what comes in through others, exported identifiers that mention internal types, the files of
// reconcilers, and the floor of versions that the module promises to embedders.
//
//	go run ./hack/layers
//
// The table of layers is in table.go; CONTRIBUTING.md explains it. It prints one line per finding and exits with 1 if
// there is any. Single imports of foreign packages are judged by depguard, see .golangci.yml.
package main

import (
	"fmt"
	"os"
	"slices"
)

func main() {
	findings, packages, err := run(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "layers:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	fmt.Printf("layers: %d packages, %d findings\n", packages, len(findings))
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// run checks the module whose root is dir.
func run(dir string) (findings []string, packages int, err error) {
	mod, err := readModule(dir)
	if err != nil {
		return nil, 0, err
	}
	// -e, because a package that does not compile yet still has imports to judge.
	all, err := listPackages(dir, "-e", "-tags", tags, "./...")
	if err != nil {
		return nil, 0, err
	}
	for _, p := range all {
		if !isOwn(p.ImportPath) {
			continue
		}
		packages++
		findings = append(findings, checkPackage(p)...)
		for _, check := range []func(listed) ([]string, error){checkInits, checkReconciler} {
			more, err := check(p)
			if err != nil {
				return nil, 0, err
			}
			findings = append(findings, more...)
		}
	}
	findings = append(findings, checkModule(mod)...)
	compiled, err := listPackages(dir, "-e", "-export", "./...")
	if err != nil {
		return nil, 0, err
	}
	exported, err := checkExported(compiled)
	if err != nil {
		return nil, 0, err
	}
	findings = append(findings, exported...)
	slices.Sort(findings)
	return slices.Compact(findings), packages, nil
}
