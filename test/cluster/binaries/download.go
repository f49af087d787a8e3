package binaries

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

const (
	// EnvtestIndex is upstream's list of archives with etcd, kube-apiserver and kubectl, as setup-envtest reads it.
	EnvtestIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	// patience is short: a machine without a network is not to wait for long.
	patience = 5 * time.Second
	// period is how often the progress of a download is written.
	period = 15 * time.Second
)

// archive is one entry of an index.
type archive struct {
	// Hash is the SHA-512 sum, and SelfLink the URL.
	Hash, SelfLink string
}

// Download downloads etcd, kube-apiserver and kubectl in a version that [Cache.Installed] finds afterwards. The index
// has the sum of the archive.
func (c Cache) Download(ctx context.Context, index string, log io.Writer) error {
	return c.download(ctx, index, fetcher{log: log, patience: patience})
}

func (c Cache) download(ctx context.Context, index string, f fetcher) error {
	pinned, err := c.KubernetesVersion()
	if err != nil {
		return err
	}
	var list strings.Builder
	if err := f.fetch(ctx, index, &list); err != nil {
		return err
	}
	var all struct{ Releases map[string]map[string]archive }
	if err := yaml.Unmarshal([]byte(list.String()), &all); err != nil {
		return fmt.Errorf("decode %s: %w", index, err)
	}
	platform := runtime.GOOS + "-" + runtime.GOARCH
	name := func(release string) string { return "envtest-" + release + "-" + platform + ".tar.gz" }
	var releases []*version.Version
	for release, archives := range all.Releases {
		v, err := version.ParseSemantic(release)
		if _, ok := archives[name(release)]; ok && err == nil && v.PreRelease() == "" && serves(pinned, release) {
			releases = append(releases, v)
		}
	}
	if len(releases) == 0 {
		return fmt.Errorf("%s has nothing for Kubernetes %s and %s", index, pinned, platform)
	}
	// The pinned minor version, if there is one, and the latest patch release.
	chosen := slices.MinFunc(releases, func(a, b *version.Version) int {
		return cmp.Or(cmp.Compare(a.Minor(), b.Minor()), cmp.Compare(b.Patch(), a.Patch()))
	}).String()
	fmt.Fprintf(f.log, "downloading etcd, kube-apiserver and kubectl %s\n", chosen)
	return c.unpack(ctx, all.Releases["v"+chosen][name("v"+chosen)], chosen+"-"+platform, f)
}

// downloads is the directory of what was downloaded.
func (c Cache) downloads() string { return filepath.Join(c.Dir, "envtest") }

// unpack downloads an archive, compares its sum, and extracts the programs into a directory of the downloads.
func (c Cache) unpack(ctx context.Context, a archive, dir string, f fetcher) (err error) {
	if err := os.MkdirAll(c.downloads(), 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	work, err := os.MkdirTemp(c.downloads(), "unfinished-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	file, err := os.Create(filepath.Join(work, "archive"))
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	defer func() { _ = file.Close() }()
	sum := sha512.New()
	if err := f.fetch(ctx, a.SelfLink, io.MultiWriter(file, sum)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != a.Hash {
		return fmt.Errorf("download %s: the SHA-512 sum is %s, want %s", a.SelfLink, got, a.Hash)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("extract %s: %w", a.SelfLink, err)
	}
	programs := filepath.Join(work, "programs")
	if err := extract(file, programs); err != nil {
		return fmt.Errorf("extract %s: %w", a.SelfLink, err)
	}
	target := filepath.Join(c.downloads(), dir)
	if err := os.RemoveAll(target); err != nil { // one that does not run
		return fmt.Errorf("replace %s: %w", dir, err)
	}
	return os.Rename(programs, target)
}

// extract extracts the programs of a control plane.
func extract(archive io.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	plain, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	names, err := Programs(ControlPlane)
	if err != nil {
		return err
	}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			_, err = assetsIn(dir)
			return err
		}
		if err != nil {
			return err
		}
		name := path.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !slices.Contains(names, strings.TrimSuffix(name, exeSuffix())) {
			continue
		}
		content, err := io.ReadAll(files)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o755)
		}
		if err != nil {
			return err
		}
	}
}

// fetcher downloads files.
type fetcher struct {
	log io.Writer
	// patience is how long a server may send nothing.
	patience time.Duration
}

// fetch writes what a URL serves.
func (f fetcher) fetch(ctx context.Context, url string, to io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(f.patience, func() { cancel(fmt.Errorf("nothing received for %s", f.patience)) })
	defer silent.Stop()
	failed := func(err error) error { return fmt.Errorf("download %s: %w", url, cmp.Or(context.Cause(ctx), err)) }
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return failed(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return failed(errors.New(response.Status))
	}
	next := time.Now().Add(period)
	for received := 0; ; {
		n, err := io.CopyN(to, response.Body, 1<<16)
		received += int(n)
		silent.Reset(f.patience)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failed(err)
		}
		if time.Now().After(next) {
			fmt.Fprintf(f.log, "downloaded %d of %d MiB\n", received>>20, response.ContentLength>>20)
			next = time.Now().Add(period)
		}
	}
}
