package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// InstallCRDs creates or updates the CRDs in the given directories or files, and waits until the API server serves
// them. Several callers may install at the same time. On a control plane that has them already it costs one request: a
// ConfigMap is named after the hash of the files. A test that changes a CRD in place uses a private control plane.
func (c *Cluster) InstallCRDs(ctx context.Context, paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	hash, err := hashFiles(paths)
	if err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	markers := clients.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	if c.Level == ControlPlane { // elsewhere deployments change CRDs beside the tests
		if _, err := markers.Get(ctx, hash, metav1.GetOptions{}); err == nil {
			return nil
		}
	}
	// A caller that loses a race against another one installs once more.
	lost := func(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }
	backoff := wait.Backoff{Steps: 20, Duration: 20 * time.Millisecond, Factor: 1.2, Jitter: 1}
	if err := retry.OnError(backoff, lost, func() error {
		_, err := envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{
			Paths: paths, ErrorIfPathMissing: true, MaxTime: time.Minute,
		})
		return err
	}); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: hash}}
	if _, err := markers.Create(ctx, marker, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("mark the CRDs as installed: %w", err)
	}
	return nil
}

// hashFiles returns a name for the content of files and of the YAML files in directories.
func hashFiles(paths []string) (string, error) {
	hash := sha256.New()
	for _, path := range paths {
		files, err := filepath.Glob(filepath.Join(path, "*.yaml"))
		if err != nil {
			return "", err
		}
		if len(files) == 0 {
			files = []string{path}
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			hash.Write(content)
		}
	}
	return fmt.Sprintf("crds-%x", hash.Sum(nil)[:16]), nil
}
