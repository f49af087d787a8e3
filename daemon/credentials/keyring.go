package credentials

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kruisekit/kruisekit/imagepull"
)

// Options say where to look. The zero value finds nothing.
type Options struct {
	// Config is the file of a CredentialProviderConfig: kubelets' --image-credential-provider-config, the reference's
	// --plugin-config-file. A file that does not exist has no plugins.
	Config string
	// Plugins is the directory that its programs are in: kubelets' --image-credential-provider-bin-dir, the reference's
	// --plugin-bin-dir.
	Plugins string
	// DockerDirs are searched for config.json, and after that for .dockercfg. The first file counts.
	DockerDirs []string
	// Env is the environment that plugins are run with, to which their configuration adds: "name=value".
	Env []string
	// Timeout of a plugin. Zero is a minute, as kubelets have it.
	Timeout time.Duration
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// Keyring looks credentials up. All methods may be called at the same time.
type Keyring struct {
	plugins []*plugin
	dirs    []string
}

// Open reads the configuration of the plugins, whose programs are not looked for until they are needed.
func Open(o Options) (*Keyring, error) {
	providers, err := readConfig(o.Config)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options, where none is given
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if len(providers) > 0 && o.Plugins == "" {
		return nil, errors.New("plugins are configured, and no directory that they are in")
	}
	k := &Keyring{dirs: slices.Clone(o.DockerDirs)}
	for _, p := range providers {
		k.plugins = append(k.plugins, newPlugin(p, o))
	}
	return k, nil
}

// Lookup gives the credentials for a repository, named in full: those of the files first, then those of each plugin
// that is configured for it. What it returns with an error counts.
func (k *Keyring) Lookup(ctx context.Context, repository string) ([]imagepull.Credential, error) {
	ring, err := readFiles(k.dirs)
	faults := []error{err}
	for _, p := range k.plugins {
		if !p.isFor(repository) {
			continue
		}
		found, err := p.ask(ctx, repository)
		faults = append(faults, err)
		ring = ring.Then(found)
	}
	return ring.Lookup(repository), errors.Join(faults...)
}

// Forget has plugins asked again for a repository, whatever they said about how long their answers hold.
func (k *Keyring) Forget(repository string) {
	for _, p := range k.plugins {
		p.forget(repository)
	}
}
