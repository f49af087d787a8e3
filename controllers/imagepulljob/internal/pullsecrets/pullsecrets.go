// Package pullsecrets brings the pull secrets of jobs to the one namespace in which nodes may read secrets, and keeps
// them as their sources are. What is copied is decided by package imagepull; this package reads, writes and remembers.
//
//	keeper := pullsecrets.New(api, pullsecrets.Options{Namespace: "kruise-daemon-config"})
//	copies, err := keeper.Cache(ctx, mgr)     // before the manager starts
//	...
//	plan, err := keeper.Claim(ctx, job)       // plan.References are what nodes are asked to use
//	err = keeper.Release(ctx, job)            // when it has ended
//
// A source is read once and then remembered, since a manager is not to see all secrets of a cluster. Changed reads
// those of jobs again; Touched takes the events of a watch instead.
package pullsecrets

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/ledger"
)

// Options of a Keeper.
type Options struct {
	// Namespace of the copies.
	Namespace string
	// Unobserved means that neither Changed nor Touched is called: each claim reads its sources.
	Unobserved bool
}

// Keeper keeps the copies of pull secrets. It is safe for concurrent use.
type Keeper struct {
	api        *binding.Binding
	namespace  string
	unobserved bool
	// copies is where copies are read from.
	copies client.Reader
	// writes are those of copies, by the secret that was copied.
	writes *ledger.Ledger[*corev1.Secret]
	// claiming is held for a namespace while its copies are read and written, so that two jobs do not both create one.
	// Jobs of different namespaces share no copies, and no job waits for the reads of another namespace.
	claiming locks
	sources  sources
}

// New returns a Keeper.
func New(api *binding.Binding, o Options) *Keeper {
	return &Keeper{
		api: api, namespace: o.Namespace, unobserved: o.Unobserved, copies: api.Cached,
		writes: ledger.New[*corev1.Secret](api.Live, api.Now),
	}
}
