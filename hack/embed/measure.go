package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// measure builds a module outside of the checkout at root that imports one package of it, and reads the bill.
func measure(root, path string) (bill, error) {
	dir, err := os.MkdirTemp("", "embed-")
	if err != nil {
		return bill{}, fmt.Errorf("make module: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files := map[string]string{
		"go.mod": "module example.com/embedder\n\ngo 1.24.0\n\n" +
			"require " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n",
		"main.go": "package main\n\nimport _ \"" + module + "/" + path + "\"\n\nfunc main() {}\n",
	}
	// The library's own sums, so that nothing has to be asked of the network that the checkout has already answered.
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return bill{}, fmt.Errorf("read go.sum: %w", err)
	}
	files["go.sum"] = string(sums)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return bill{}, fmt.Errorf("make module: %w", err)
		}
	}
	if _, err := run(dir, "mod", "tidy"); err != nil {
		return bill{}, err
	}
	if _, err := run(dir, "build", "-o", filepath.Join(dir, "embedder"), "."); err != nil {
		return bill{}, err
	}
	return read(dir)
}

// read makes the bill of the module in dir.
func read(dir string) (bill, error) {
	packages, err := run(dir, "list", "-deps", "-f", "{{if .Standard}}std {{end}}{{.ImportPath}}", ".")
	if err != nil {
		return bill{}, err
	}
	var b bill
	for p := range strings.FieldsSeq(strings.ReplaceAll(packages, "std ", "std/")) {
		switch {
		case strings.HasPrefix(p, "std/"):
			b.std++
		case within(p, []string{module}):
			b.own++
		case p != "example.com/embedder":
			b.foreign = append(b.foreign, p)
		}
	}
	required, err := run(dir, "mod", "edit", "-print")
	if err != nil {
		return bill{}, err
	}
	for line := range strings.Lines(required) {
		if strings.HasPrefix(line, "\t") && !strings.Contains(line, module) {
			b.modules++
		}
	}
	return b, nil
}

func run(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
