package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/test/cluster/internal/flock"
)

// Build builds what is missing of the subset and reports each program that it builds to log. Several processes may call
// it at once: one builds, the others wait and find the result.
func (c Cache) Build(ctx context.Context, s Subset, log io.Writer) error {
	names, err := Programs(s)
	if err != nil {
		return err
	}
	if _, err := c.Paths(s); err == nil {
		return nil
	}
	lock, err := flock.Exclusive(ctx, filepath.Join(c.Dir, "bin", "build.lock"))
	if err != nil {
		return fmt.Errorf("wait for another build: %w", err)
	}
	defer lock.Release()
	for _, name := range names {
		_, err := c.Path(name)
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrMissing) {
			return err
		}
		start := time.Now()
		if err := c.build(ctx, name); err != nil {
			return err
		}
		fmt.Fprintf(log, "built %s in %s\n", name, time.Since(start).Round(time.Second/10))
	}
	return nil
}

func (c Cache) build(ctx context.Context, name string) error {
	p := catalogue()[name]
	target, err := c.target(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	version, err := c.version(p)
	if err != nil {
		return err
	}
	// The lock makes the name unique, and a leftover of a killed build is simply overwritten.
	unfinished := target + ".unfinished"
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", unfinished}, p.arguments(version)...)...)
	cmd.Dir = filepath.Join(c.Source, p.module)
	cmd.Env = append(os.Environ(), p.environment()...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s%s", name, err, output, hint(p))
	}
	if err := os.Rename(unfinished, target); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	return nil
}

func hint(p program) string {
	if p.cgo {
		return "this program needs a C compiler, pkg-config and libseccomp (Debian: gcc pkg-config libseccomp-dev)\n"
	}
	return ""
}

// version of the upstream module that a program wants stamped into it, from the require line of the nested module.
func (c Cache) version(p program) (string, error) {
	if p.pinned == "" {
		return "", nil
	}
	content, err := os.ReadFile(filepath.Join(c.Source, p.module, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read the pinned version: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		field := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(field) >= 2 && field[0] == p.pinned {
			return field[1], nil
		}
	}
	return "", fmt.Errorf("module %s does not pin %s", p.module, p.pinned)
}
