package imagepull

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/imagepull"
)

const defaultMaxPulls = 5

// Images is what the container runtime of the node does. A *cri.Runtime does it.
type Images interface {
	// Image returns the image that a reference leads to, or cri.ErrNotFound.
	Image(ctx context.Context, reference string) (cri.Image, error)
	// Pull pulls an image and returns its ID. It ends when its context does, at the runtime too.
	Pull(ctx context.Context, reference string, c cri.Credentials, s cri.SandboxConfig) (string, error)
	// ImageSpace measures the file systems of images, without a call of the runtime. An error says that they are not
	// visible.
	ImageSpace() ([]cri.Space, error)
	// Connected says whether the runtime is there, and gives what is closed when that changes.
	Connected() (up bool, changed <-chan struct{})
}

// Keyring has credentials that are the node's and not a pull's.
type Keyring interface {
	// Lookup gives the credentials for a repository, named in full. What it returns with an error counts.
	Lookup(ctx context.Context, repository string) ([]imagepull.Credential, error)
	// Forget says that a registry has refused credentials for a repository: what is remembered of them is stale.
	Forget(repository string)
}

// Options of a Reconciler. The zero value behaves as the reference does, but for MaxPulls.
type Options struct {
	// Secrets reads pull secrets. SetupWithManager takes the manager's API reader where it is nil, so that no cache of
	// Secrets comes to be; without either, secrets count as missing.
	Secrets client.Reader
	// Live reads past the cache: a NodeImage that the cache shows as it was before a write. SetupWithManager takes the
	// manager's API reader where it is nil.
	Live client.Reader
	// Keyring is asked after the secrets of a pull; nil has nothing.
	Keyring Keyring
	// Recorder takes events. Where it is nil, SetupWithManager makes one whose events come from kruise-daemon-imagepuller
	// on the node.
	Recorder record.EventRecorder
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// MaxPulls is how many pulls run at the same time: the reference's --max-workers-for-pull-image. Zero is 5, below zero
	// is no limit, as the reference has it by default.
	MaxPulls int
	// MinFreePercent is the share of the file system of images that pulls leave free. Zero is no bound, as in the
	// reference.
	MinFreePercent int
}
