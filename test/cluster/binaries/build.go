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

// Build builds what is missing of the subset and writes its progress to log. Several processes may call it at once: one
// builds, the others wait and find the result.
func (c Cache) Build(ctx context.Context, s Subset, log io.Writer) error {
	names, err := Programs(s)
	if err != nil {
		return err
	}
	return c.BuildPrograms(ctx, names, log)
}

// BuildPrograms does the same for programs by name.
func (c Cache) BuildPrograms(ctx context.Context, names []string, log io.Writer) error {
	missing, err := c.missing(names)
	if err != nil || len(missing) == 0 {
		return err
	}
	lock, err := flock.Exclusive(ctx, filepath.Join(c.Dir, "bin", "build.lock"))
	if err != nil {
		return fmt.Errorf("wait for another build: %w", err)
	}
	defer lock.Release()
	if missing, err = c.missing(names); err != nil {
		return err
	}
	began := time.Now()
	for i, name := range missing {
		start := time.Now()
		stop := show(ctx, log, progress{names: missing, done: i, elapsed: start.Sub(began)}, began)
		err := c.build(ctx, name)
		stop()
		if err != nil {
			return err
		}
		fmt.Fprintf(log, "built %s in %s\n", name, time.Since(start).Round(time.Second/10))
	}
	return nil
}

// missing returns the programs that are not built, in the order given.
func (c Cache) missing(names []string) ([]string, error) {
	var missing []string
	for _, name := range names {
		if _, err := c.Path(name); errors.Is(err, ErrMissing) {
			missing = append(missing, name)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
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
	if p.tags == seccomp && !hasSeccomp() {
		p.tags = ""
		if err := os.WriteFile(target+withoutSeccomp, nil, 0o600); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	} else if err := os.RemoveAll(target + withoutSeccomp); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
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
		return "this program needs a C compiler (Debian: gcc)\n"
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
