package ground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// prepare downloads or builds what is needed and missing on this machine, and returns the paths of all programs.
func prepare(ctx context.Context, say io.Writer) (map[string]string, error) {
	store, err := binaries.Open()
	if err != nil {
		return nil, err
	}
	paths := store.Installed(ctx)
	if len(paths) == 0 && lacks(store, "etcd", "kube-apiserver") {
		switch err := store.Download(ctx, say); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			fmt.Fprintf(say, "%v: compiling instead\n", err)
		default:
			paths = store.Installed(ctx)
		}
	}
	names, err := binaries.Programs(binaries.Demo)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return paths[name] != "" })
	if err := store.BuildPrograms(ctx, names, say); err != nil {
		return nil, fmt.Errorf("build the cluster: %w", err)
	}
	for _, name := range names {
		if paths[name], err = store.Path(name); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// lacks reports whether one of the programs is not built.
func lacks(store binaries.Cache, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := store.Path(name)
		return errors.Is(err, binaries.ErrMissing)
	})
}
