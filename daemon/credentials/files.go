package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/imagepull"
)

// readFiles reads the first of docker's configuration files that there is and that makes sense: those of today in all
// directories, then those of old.
func readFiles(dirs []string) (imagepull.Keyring, error) {
	var faults []error
	for _, kind := range []struct {
		file   string
		format corev1.SecretType
	}{{"config.json", corev1.SecretTypeDockerConfigJson}, {".dockercfg", corev1.SecretTypeDockercfg}} {
		for _, dir := range dirs {
			path := filepath.Join(dir, kind.file)
			data, err := os.ReadFile(path) //nolint:gosec // a directory that the caller names
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				var k imagepull.Keyring
				if k, err = imagepull.ReadKeyring(data, kind.format); err == nil {
					return k, errors.Join(faults...)
				}
			}
			faults = append(faults, fmt.Errorf("read %s: %w", path, err))
		}
	}
	return imagepull.Keyring{}, errors.Join(faults...)
}
