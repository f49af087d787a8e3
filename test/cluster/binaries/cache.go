package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// CacheVariable names the environment variable that moves the cache.
const CacheVariable = "KRUISEKIT_CACHE"

const rootModule = "module github.com/kruisekit/kruisekit"

// ErrMissing says that a program has not been built yet.
var ErrMissing = errors.New("not built")

// Cache knows where the programs are. The zero value is useless: call Open.
type Cache struct {
	// Dir is the cache directory, which also holds the state of running clusters.
	Dir string
	// Source is the directory of this package in the work tree.
	Source string
	// Kubernetes is the version of the programs of Kubernetes where it is not the pinned one. See Of.
	Kubernetes string
}

// Open finds the cache directory and the work tree that the current directory belongs to. The programs of Kubernetes
// have the minor version in $KRUISEKIT_KUBERNETES, if it is set.
func Open() (Cache, error) {
	dir := os.Getenv(CacheVariable)
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return Cache{}, fmt.Errorf("find the cache directory (set %s): %w", CacheVariable, err)
		}
		dir = filepath.Join(base, "kruisekit")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Cache{}, fmt.Errorf("find the cache directory: %w", err)
	}
	root, err := workTree()
	if err != nil {
		return Cache{}, err
	}
	return Cache{Dir: dir, Source: filepath.Join(root, "test", "cluster", "binaries")}.Of(os.Getenv(KubernetesVariable))
}

// workTree walks up to the root module. Tests run in the directory of their package, so this holds for them too, also
// for those in nested modules.
func workTree() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the work tree: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && isRoot(string(content)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the work tree: no go.mod with %q above %s", rootModule, start)
		}
	}
}

func isRoot(gomod string) bool {
	for line := range strings.Lines(gomod) {
		if strings.TrimSpace(line) == rootModule {
			return true
		}
	}
	return false
}

// Root is the directory of the root module.
func (c Cache) Root() string { return filepath.Join(c.Source, "..", "..", "..") }

// State is the directory in which the clusters of the given kind keep their state.
func (c Cache) State(kind string) string { return filepath.Join(c.Dir, "state", kind) }

// Path of a program, or an error that wraps ErrMissing and says how to build it.
func (c Cache) Path(name string) (string, error) {
	path, err := c.target(name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is %w: run `go run ./test/cluster/cmd/cluster build`", name, ErrMissing)
	} else if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return path, nil
}

// Paths of all programs of a subset by their names. The error names all that is missing.
func (c Cache) Paths(s Subset) (map[string]string, error) {
	names, err := Programs(s)
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string, len(names))
	var missing []string
	for _, name := range names {
		path, err := c.Path(name)
		if errors.Is(err, ErrMissing) {
			missing = append(missing, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: %w; run `go run ./test/cluster/cmd/cluster build %s`",
			strings.Join(missing, ", "), ErrMissing, s)
	}
	return paths, nil
}

// Assets are the paths of etcd, kube-apiserver and kubectl: those in $KUBEBUILDER_ASSETS if it is set, as with envtest.
func (c Cache) Assets() (map[string]string, error) {
	dir := os.Getenv(AssetsVariable)
	if dir == "" {
		return c.Paths(ControlPlane)
	}
	paths, err := assetsIn(dir)
	if err != nil {
		return nil, fmt.Errorf("find the programs in KUBEBUILDER_ASSETS: %w", err)
	}
	return paths, nil
}

// target is where a program is or will be.
func (c Cache) target(name string) (string, error) {
	p, ok := catalogue()[name]
	if !ok {
		return "", fmt.Errorf("unknown program %q", name)
	}
	key, err := c.key(p)
	if err != nil {
		return "", err
	}
	return filepath.Join(c.Dir, "bin", c.directory(p, key), name), nil
}

// directory is the name of what is made of a module.
func (c Cache) directory(p program, key string) string {
	if c.chosen(p) {
		return p.module + "-" + c.Kubernetes + "-" + key
	}
	return p.module + "-" + key
}

// key digests the versions, the tags and the sources that a program is built from. It covers the go.mod and go.sum of
// the module, so that the programs of others share one directory, and of the project's own code that of the program
// alone.
func (c Cache) key(p program) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if tags := p.buildTags(); tags != "" {
		fmt.Fprintln(hash, tags)
	}
	if c.chosen(p) {
		fmt.Fprint(hash, c.tools())
		return hex.EncodeToString(hash.Sum(nil))[:16], nil
	}
	files, err := filepath.Glob(filepath.Join(c.Source, p.module, "*"))
	if err != nil {
		return "", fmt.Errorf("list module %s: %w", p.module, err)
	}
	if len(files) == 0 {
		return "", fmt.Errorf("module %s is not in %s", p.module, c.Source)
	}
	if dir, own := strings.CutPrefix(p.pkg, ownCode); own {
		code, err := filepath.Glob(filepath.Join(c.Source, p.module, dir, "*"))
		if err != nil {
			return "", fmt.Errorf("list code of %s: %w", dir, err)
		}
		files = append(files, code...)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("digest module %s: %w", p.module, err)
		}
		fmt.Fprintln(hash, filepath.Base(file), len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
