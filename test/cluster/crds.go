package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// served is the annotation of a CRD that the API server serves as a file defines it, with the hash of that file. A test
// that changes a CRD in place uses a private control plane.
const served = "test.kruisekit.dev/served"

// InstallCRDs creates or updates the CRDs in the given directories or files, and waits until the API server serves
// them. Several callers may install at the same time. On a control plane that serves them already it costs one request.
func (c *Cluster) InstallCRDs(ctx context.Context, paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	hashes, err := hashFiles(paths)
	if err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	// A caller that loses a race against another one looks again at what is left to do.
	lost := func(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }
	backoff := wait.Backoff{Steps: 20, Duration: 20 * time.Millisecond, Factor: 1.2, Jitter: 1}
	if err := retry.OnError(backoff, lost, func() error { return c.installMissing(ctx, hashes) }); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	return nil
}

// hashFiles returns the hash of each file.
func hashFiles(paths []string) (map[string]string, error) {
	hashes := map[string]string{}
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err != nil {
			return nil, err
		} else if info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			hash := sha256.Sum256(content)
			hashes[file] = hex.EncodeToString(hash[:])
		}
	}
	return hashes, nil
}

// dropServed removes the files whose CRDs the API server serves.
func (c *Cluster) dropServed(ctx context.Context, hashes map[string]string) error {
	objects, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	crds, err := objects.Resource(crdResource()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list CRDs: %w", err)
	}
	known := map[string]bool{}
	for _, crd := range crds.Items {
		known[crd.Annotations[served]] = crd.DeletionTimestamp == nil
	}
	for path, hash := range hashes {
		if known[hash] {
			delete(hashes, path)
		}
	}
	return nil
}

// installMissing installs the files whose CRDs the API server does not serve yet.
func (c *Cluster) installMissing(ctx context.Context, hashes map[string]string) error {
	if c.Level == ControlPlane { // elsewhere deployments change CRDs beside the tests
		if err := c.dropServed(ctx, hashes); err != nil || len(hashes) == 0 {
			return err
		}
	}
	o := envtest.CRDInstallOptions{MaxTime: time.Minute}
	if deadline, ok := ctx.Deadline(); ok {
		o.MaxTime = time.Until(deadline)
	}
	of := map[string]string{} // the hash of each CRD's file
	for path, hash := range hashes {
		file := envtest.CRDInstallOptions{Paths: []string{path}, ErrorIfPathMissing: true}
		if err := envtest.ReadCRDFiles(&file); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		for _, crd := range file.CRDs {
			o.CRDs, of[crd.Name] = append(o.CRDs, crd), hash
		}
	}
	if _, err := envtest.InstallCRDs(c.Config, o); err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	for name, hash := range of {
		_, err := objects.Resource(crdResource()).Patch(ctx, name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+served+`":"`+hash+`"}}}`), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("annotate CRD: %w", err)
		}
	}
	return nil
}

func crdResource() schema.GroupVersionResource {
	return apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
}
