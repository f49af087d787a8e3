package ground

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/kruisekit/kruisekit/test/cluster/binaries"
)

// builds returns the programs to build: those that are needed and not installed. Readers use kubectl, the ground does
// not.
func builds(kubectl bool, installed map[string]string) ([]string, error) {
	names, err := binaries.Programs(binaries.Demo)
	if err != nil {
		return nil, err
	}
	if kubectl {
		names = append(names, "kubectl")
	}
	return slices.DeleteFunc(names, func(name string) bool { return installed[name] != "" }), nil
}

// prepare builds what is needed and missing on this machine, and returns the paths of all programs.
func prepare(ctx context.Context, kubectl bool, say io.Writer) (map[string]string, error) {
	store, err := binaries.Open()
	if err != nil {
		return nil, err
	}
	paths := maps.Clone(store.Installed(ctx))
	if paths == nil {
		paths = map[string]string{}
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
