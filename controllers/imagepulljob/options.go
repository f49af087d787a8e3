package imagepulljob

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
)

// Options of a Reconciler. The zero value behaves as the reference does by default.
type Options struct {
	// Live reads past the cache: pull secrets, and NodeImages after a conflict. Nil is the manager's API reader.
	Live client.Reader
	// Recorder takes events. SetupWithManager takes the manager's where it is nil.
	Recorder record.EventRecorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time

	// SecretNamespace is where nodes may read pull secrets, and where copies of them are kept. Empty is
	// [v1beta1.DefaultImagePullSecretNamespace]. The namespace need not exist before a job names a secret.
	SecretNamespace string
	// SecretPeriod is how often pull secrets of jobs under way are read again, at one read each, and copies that no job
	// uses are deleted. Zero is ten seconds.
	SecretPeriod time.Duration
	// KeepSeconds is added to the time that tags of jobs with an end stay on their nodes. Nil is 300.
	KeepSeconds *int32
	// Explain takes the notes of each pass, after its writes. The pass waits for it. Nil takes none.
	Explain func(ctx context.Context, job types.NamespacedName, notes []note.Note)
}

// secretPeriod is within the seconds that users of pull secrets are used to wait.
const secretPeriod = 10 * time.Second

func (o Options) withDefaults() Options {
	o.SecretNamespace = cmp.Or(o.SecretNamespace, v1beta1.DefaultImagePullSecretNamespace)
	o.SecretPeriod = cmp.Or(max(o.SecretPeriod, 0), secretPeriod)
	return o
}
