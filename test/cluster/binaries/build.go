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
	done := 0
	for _, together := range c.batches(missing) {
		start, all := time.Now(), strings.Join(together, ", ")
		fmt.Fprintf(log, "building %s: up to program %d of %d, minutes each\n", all, done+len(together), len(missing))
		if err := c.build(ctx, together); err != nil {
			return fmt.Errorf("build %s: %w", all, err)
		}
		done += len(together)
		fmt.Fprintf(log, "built %s in %s\n", all, time.Since(start).Round(time.Second/10))
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

// batches divides programs into those that one call of the go command builds: neighbours of one module with the same
// tags. The programs share packages, and where one is being linked, others are compiled.
func (c Cache) batches(names []string) [][]string {
	var all [][]string
	for i, name := range names {
		p := catalogue()[name]
		if i > 0 {
			before := catalogue()[names[i-1]]
			if p.module == before.module && p.tags == before.tags && c.chosen(p) == c.chosen(before) {
				all[len(all)-1] = append(all[len(all)-1], name)
				continue
			}
		}
		all = append(all, []string{name})
	}
	return all
}

// build builds one batch.
func (c Cache) build(ctx context.Context, names []string) error {
	unfinished := filepath.Join(c.Dir, "bin", "unfinished")
	if err := os.RemoveAll(unfinished); err != nil { // of a killed build
		return err
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	p := catalogue()[names[0]]
	args, err := c.arguments(names, p.buildTags())
	if err != nil {
		return err
	}
	dir, err := c.moduleDir(ctx, p)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go",
		append([]string{"build", "-o", unfinished + string(filepath.Separator)}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), p.environment()...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s%s", err, output, hint(p))
	}
	for _, name := range names {
		target, err := c.target(name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(unfinished, catalogue()[name].executable()), target); err != nil {
			return err
		}
	}
	return nil
}

func hint(p program) string {
	if p.cgo {
		return "this program needs a C compiler (Debian: gcc libc6-dev)\n"
	}
	return ""
}

// version of the upstream module that a program wants stamped into it, from the require line of the nested module.
func (c Cache) version(p program) (string, error) {
	switch {
	case p.pinned == "":
		return "", nil
	case c.chosen(p):
		return c.Kubernetes, nil
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
