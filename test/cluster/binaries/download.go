package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// patience bounds a download.
const patience = 5 * time.Minute

// Download downloads etcd, kube-apiserver and kubectl of the pinned minor version, from upstream's index for envtest,
// and starts them once. [Cache.Installed] finds them afterwards.
func (c Cache) Download(ctx context.Context, log io.Writer) error {
	pinned, err := c.KubernetesVersion()
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "downloading etcd, kube-apiserver and kubectl %s\n", Minor(pinned))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	downloaded := &envtest.Environment{
		DownloadBinaryAssets: true, DownloadBinaryAssetsVersion: Minor(pinned), BinaryAssetsDirectory: c.downloads(),
	}
	ended := make(chan error, 1)
	go func() {
		_, err := downloaded.Start()
		ended <- errors.Join(err, downloaded.Stop())
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("download: %w", ctx.Err())
	}
}

// downloads is the directory of what was downloaded.
func (c Cache) downloads() string { return filepath.Join(c.Dir, "envtest") }
