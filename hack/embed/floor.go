package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// stable are the packages that keep their promise between minor versions (docs/stability.md).
func stable() []string {
	return []string{
		"inplace", "revision", "scale", "lifecycle", "workload", "write", "note", "ledger", "driver",
		"driver/runtimeclient", "driver/clientgo",
	}
}

// operator is the go.mod of an operator that is as old as the floor: what it requires, before it imports the library.
const operator = `module example.com/operator

go 1.24.0

require (
	k8s.io/api v0.34.1
	k8s.io/apimachinery v0.34.1
	k8s.io/client-go v0.34.1
	sigs.k8s.io/controller-runtime v0.22.4
)
`

// raised returns what an operator on the floor is raised to by an import of packages of the library: the Go version
// and the modules that it has already.
func raised(root string, packages []string) ([]string, error) {
	dir, err := os.MkdirTemp("", "embed-")
	if err != nil {
		return nil, fmt.Errorf("make module: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("read go.sum: %w", err)
	}
	imports := "package main\n\nimport (\n\t_ \"k8s.io/client-go/kubernetes\"\n\t_ \"sigs.k8s.io/controller-runtime\"\n"
	before, err := tidied(dir, operator, imports+")\n\nfunc main() {}\n", sums)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		imports += "\t_ \"" + module + "/" + p + "\"\n"
	}
	with := operator + "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	after, err := tidied(dir, with, imports+")\n\nfunc main() {}\n", sums)
	if err != nil {
		return nil, err
	}
	if _, err := run(dir, "build", "-o", filepath.Join(dir, "operator"), "."); err != nil {
		return nil, err
	}
	return before.raisedTo(after), nil
}

// versions are the versions of a go.mod.
type versions struct {
	Go      string
	Require []struct{ Path, Version string }
}

func (v versions) raisedTo(after versions) []string {
	var raised []string
	if v.Go != after.Go {
		raised = append(raised, fmt.Sprintf("go %s to %s", v.Go, after.Go))
	}
	had := map[string]string{}
	for _, r := range v.Require {
		had[r.Path] = r.Version
	}
	for _, r := range after.Require {
		if version, ok := had[r.Path]; ok && version != r.Version {
			raised = append(raised, fmt.Sprintf("%s %s to %s", r.Path, version, r.Version))
		}
	}
	return raised
}

// tidied returns the versions of a module of one file.
func tidied(dir, mod, main string, sums []byte) (versions, error) {
	for name, text := range map[string]string{"go.mod": mod, "main.go": main, "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return versions{}, fmt.Errorf("make module: %w", err)
		}
	}
	if _, err := run(dir, "mod", "tidy"); err != nil {
		return versions{}, err
	}
	text, err := run(dir, "mod", "edit", "-json")
	if err != nil {
		return versions{}, err
	}
	var v versions
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&v); err != nil {
		return versions{}, fmt.Errorf("read go.mod: %w", err)
	}
	return v, nil
}
