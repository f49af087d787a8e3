package binaries

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
)

// AssetsVariable names the environment variable with the directory of etcd, kube-apiserver and kubectl, as with
// envtest.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// Installed returns the paths of programs that are on this machine already: in $KUBEBUILDER_ASSETS, or where
// setup-envtest stores them. Only a kube-apiserver of the pinned minor version or the next one counts, because the
// controllers are built in the pinned version. It returns nothing where there is none.
func (c Cache) Installed(ctx context.Context) map[string]string {
	pinned, err := c.version(catalogue()["kube-apiserver"])
	if err != nil {
		return nil
	}
	for _, dir := range assetDirs(os.Getenv, runtime.GOOS, runtime.GOARCH) {
		paths, err := assetsIn(dir)
		if err == nil && serves(pinned, versionOf(ctx, paths["kube-apiserver"])) {
			return paths
		}
	}
	return nil
}

// assetDirs are the directories that may have the programs, the newest version first.
func assetDirs(getenv func(string) string, system, architecture string) []string {
	if dir := getenv(AssetsVariable); dir != "" {
		return []string{dir} // the user's choice
	}
	store := filepath.Join(getenv("HOME"), ".local", "share", "kubebuilder-envtest")
	switch dir := getenv("XDG_DATA_HOME"); {
	case system == "darwin":
		store = filepath.Join(getenv("HOME"), "Library", "Application Support", "io.kubebuilder.envtest")
	case system == "windows":
		store = filepath.Join(getenv("LocalAppData"), "kubebuilder-envtest")
	case dir != "":
		store = filepath.Join(dir, "kubebuilder-envtest")
	}
	dirs, err := filepath.Glob(filepath.Join(store, "k8s", "*-"+system+"-"+architecture))
	if err != nil {
		return nil
	}
	slices.Sort(dirs)
	slices.Reverse(dirs)
	return dirs
}

// assetsIn returns the paths of the programs in a directory, or an error where one is missing.
func assetsIn(dir string) (map[string]string, error) {
	names, err := Programs(ControlPlane)
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string, len(names))
	for _, name := range names {
		paths[name] = filepath.Join(dir, name+exeSuffix())
		if _, err := os.Stat(paths[name]); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// versionOf asks a program of Kubernetes for its version; empty where it has no answer.
func versionOf(ctx context.Context, path string) string {
	output, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	return string(output)
}

var minor = regexp.MustCompile(`v(\d+)\.(\d+)\.\d+`)

// serves reports whether an API server of a version may serve controllers of another, by the texts that name the
// versions. As upstream allows it, the API server has the same minor version as the controllers, or the next one.
func serves(controllers, server string) bool {
	c, s := minor.FindStringSubmatch(controllers), minor.FindStringSubmatch(server)
	if c == nil || s == nil || c[1] != s[1] {
		return false
	}
	of, errC := strconv.Atoi(c[2])
	is, errS := strconv.Atoi(s[2])
	return errors.Join(errC, errS) == nil && (is == of || is == of+1)
}
