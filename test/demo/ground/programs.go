package ground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// builds returns the programs to build: those that are needed and not installed. Readers use kubectl, the ground does
// not. An installed kube-controller-manager takes the place of kube-controllers.
func builds(kubectl bool, installed map[string]string) ([]string, error) {
	names, err := binaries.Programs(binaries.Demo)
	if err != nil {
		return nil, err
	}
	if kubectl {
		names = append(names, "kubectl")
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return installed[name] != "" || name == "kube-controllers" && installed["kube-controller-manager"] != ""
	}), nil
}

// prepare downloads or builds what is needed and missing on this machine, and returns the paths of all programs.
func prepare(ctx context.Context, kubectl bool, say io.Writer) (map[string]string, error) {
	store, err := binaries.Open()
	if err != nil {
		return nil, err
	}
	paths := store.Installed(ctx)
	if paths["etcd"] == "" && lacks(store, "etcd", "kube-apiserver") {
		switch err := store.Download(ctx, binaries.EnvtestIndex, say); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			fmt.Fprintf(say, "%v: compiling instead\n", err)
		default:
			paths = store.Installed(ctx)
		}
	}
	names, err := builds(kubectl, paths)
	if err != nil {
		return nil, err
	}
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
