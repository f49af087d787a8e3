package binaries

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// KubernetesVariable names the environment variable that chooses a minor version of Kubernetes, such as 1.34, other
// than the pinned one.
const KubernetesVariable = "KRUISEKIT_KUBERNETES"

const kubernetes = "k8s.io/kubernetes"

// Offered returns the versions of Kubernetes that can be chosen, the oldest first.
func (c Cache) Offered() ([]string, error) {
	content, err := os.ReadFile(filepath.Join(c.Source, "kubernetes.versions"))
	if err != nil {
		return nil, fmt.Errorf("read the versions of Kubernetes: %w", err)
	}
	var versions []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			versions = append(versions, line)
		}
	}
	return versions, nil
}

// Minor is the minor version of a version: 1.34 of v1.34.4.
func Minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// Of returns the cache with the programs of a minor version of Kubernetes. An empty one is that of the pinned version.
func (c Cache) Of(minor string) (Cache, error) {
	c.Kubernetes = ""
	if minor == "" {
		return c, nil
	}
	pinned, err := c.KubernetesVersion()
	if err != nil || minor == Minor(pinned) {
		return c, err
	}
	versions, err := c.Offered()
	if err != nil {
		return c, err
	}
	at := slices.IndexFunc(versions, func(version string) bool { return Minor(version) == minor })
	if at < 0 {
		return c, fmt.Errorf("choose Kubernetes %s: want a minor version of %v", minor, versions)
	}
	c.Kubernetes = versions[at]
	return c, nil
}

// KubernetesVersion is the version of kube-apiserver and the other programs of Kubernetes.
func (c Cache) KubernetesVersion() (string, error) { return c.version(catalogue()["kube-apiserver"]) }

// chosen reports whether a program is of a chosen version of Kubernetes, not of the pinned one.
func (c Cache) chosen(p program) bool { return c.Kubernetes != "" && p.pinned == kubernetes }

// tools are the lines of the go.mod from which the programs of a chosen version are built.
func (c Cache) tools() string {
	var b strings.Builder
	fmt.Fprintf(&b, "module kubernetes\n\ngo 1.26.0\n\nrequire %s %s\n", kubernetes, c.Kubernetes)
	for _, name := range kubernetesPrograms() {
		fmt.Fprintf(&b, "tool %s\n", catalogue()[name].pkg)
	}
	return b.String()
}

// moduleDir is the directory of the module from which a program is built. For a chosen version of Kubernetes it is made
// on first use.
func (c Cache) moduleDir(ctx context.Context, p program) (string, error) {
	if !c.chosen(p) {
		return filepath.Join(c.Source, p.module), nil
	}
	key, err := c.key(p)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(c.Dir, "modules", c.directory(p, key))
	if _, err := os.Stat(filepath.Join(dir, "go.sum")); err == nil {
		return dir, nil
	}
	if err := c.makeModule(ctx, dir, p.environment()); err != nil {
		return "", fmt.Errorf("make the module of Kubernetes %s: %w", c.Kubernetes, err)
	}
	return dir, nil
}

// makeModule makes the module of a chosen version. k8s.io/kubernetes replaces the modules that are released with it by
// directories of its own; here their releases take that place.
func (c Cache) makeModule(ctx context.Context, dir string, environment []string) error {
	unfinished := dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil { // of a killed build
		return err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return err
	}
	run := func(out any, args ...string) error {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = unfinished, append(os.Environ(), environment...)
		var said strings.Builder
		cmd.Stderr = &said
		output, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, output, said.String())
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(output, out)
	}
	var downloaded struct{ GoMod string }
	if err := run(&downloaded, "mod", "download", "-json", kubernetes+"@"+c.Kubernetes); err != nil {
		return err
	}
	var upstream struct {
		Replace []struct{ Old struct{ Path string } }
	}
	if err := run(&upstream, "mod", "edit", "-json", downloaded.GoMod); err != nil {
		return err
	}
	var gomod strings.Builder
	gomod.WriteString(c.tools())
	for _, r := range upstream.Replace {
		fmt.Fprintf(&gomod, "replace %s => %[1]s v0%s\n", r.Old.Path, strings.TrimPrefix(c.Kubernetes, "v1"))
	}
	if err := os.WriteFile(filepath.Join(unfinished, "go.mod"), []byte(gomod.String()), 0o600); err != nil {
		return err
	}
	if err := run(nil, "mod", "tidy"); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}
