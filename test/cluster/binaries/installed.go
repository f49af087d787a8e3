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

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// AssetsVariable names the environment variable with the directory of etcd, kube-apiserver and kubectl, as with
// envtest.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// Installed returns the paths of programs that are on this machine already: in $KUBEBUILDER_ASSETS, where setup-envtest
// stores them, or where [Cache.Download] does. Only a kube-apiserver of the pinned minor version or the next one
// counts, because the controllers are built in the pinned version. The map is empty where there is none.
func (c Cache) Installed(ctx context.Context) map[string]string {
	pinned, err := c.KubernetesVersion()
	if err != nil {
		return map[string]string{}
	}
	for _, dir := range c.assetDirs() {
		paths, err := assetsIn(dir)
		if err == nil && serves(pinned, versionOf(ctx, paths["kube-apiserver"])) {
			return paths
		}
	}
	return map[string]string{}
}

// assetDirs are the directories that may have the programs, the newest version first.
func (c Cache) assetDirs() []string {
	if dir := os.Getenv(AssetsVariable); dir != "" {
		return []string{dir} // the user's choice
	}
	var dirs []string
	store, _ := envtest.SetupEnvtestDefaultBinaryAssetsDirectory() // without a home there is none
	for _, root := range []string{store, c.downloads()} {
		found, _ := filepath.Glob(filepath.Join(root, "*-"+runtime.GOOS+"-"+runtime.GOARCH)) // the pattern is valid
		slices.Reverse(found)
		dirs = append(dirs, found...)
	}
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
		paths[name] = filepath.Join(dir, name)
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
