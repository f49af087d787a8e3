// Package pullsecrets keeps copies of the pull secrets of jobs in the one namespace in which nodes may read secrets.
// Package imagepull decides what a copy contains; this package reads, writes and remembers.
//
//	keeper := pullsecrets.New(api, "kruise-daemon-config", users)
//	copies, err := keeper.Cache(ctx, mgr)          // before the manager starts
//	...
//	references, notes, err := keeper.Claim(ctx, job)
//	err = keeper.Release(ctx, name)                // the job has ended or is gone
//	err = keeper.Refresh(ctx, sources, requeue)    // again and again
//
// Each call computes a copy from its source and from the jobs under way that name the source, so that it does not
// matter which call comes first, or which one is lost. The name of a copy follows from that of its source.
package pullsecrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/turns"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// copyField is the name of the index of copies, by what was copied and by who uses it.
	copyField  = "kruisekit.dev/pull-secret"
	fieldOwner = "kruise-pull-secrets"
)

// Keeper keeps the copies of pull secrets. It is safe for concurrent use.
type Keeper struct {
	api       *binding.Binding
	namespace string
	users     Users
	// copies is where copies are read from.
	copies client.Reader
	// writes are those of copies, by the secret that was copied.
	writes *ledger.Ledger[*corev1.Secret]
	// turns are taken by secret while a copy is settled, so that two reconciles do not write different users of it.
	turns *turns.Turns
	known passes.Memory[types.NamespacedName, source]
}

// Users returns the jobs under way that name a secret, each as namespace/name.
type Users func(ctx context.Context, secret types.NamespacedName) ([]string, error)

// source is a pull secret as it was read last.
type source struct {
	read bool
	// secret has what its copy has; nil for one that does not exist.
	secret *corev1.Secret
	// problem is why nodes cannot use it.
	problem string
}

// New returns a Keeper of copies in a namespace.
func New(api *binding.Binding, namespace string, users Users) *Keeper {
	return &Keeper{
		api: api, namespace: namespace, users: users, copies: api.Cached, turns: turns.New(),
		writes: ledger.New[*corev1.Secret](api.Live, api.Now),
	}
}

// Cache adds to a manager a cache of the secrets in the nodes' namespace, and returns it. The manager's own would ask
// for the secrets of the whole cluster.
func (k *Keeper) Cache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	copies, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{k.namespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("make cache of pull secrets: %w", err)
	}
	if err := k.Index(ctx, copies); err != nil {
		return nil, err
	}
	if err := mgr.Add(copies); err != nil {
		return nil, fmt.Errorf("add cache of pull secrets: %w", err)
	}
	k.copies = copies
	return copies, nil
}

// Index adds the index by which the Keeper finds copies.
func (*Keeper) Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Secret{}, copyField, func(o client.Object) []string {
		keys := []string{"source:" + SourceOf(o).String()}
		for _, user := range UsersOf(o) {
			keys = append(keys, "user:"+user.String())
		}
		return keys
	})
	if err != nil {
		return fmt.Errorf("index pull secrets: %w", err)
	}
	return nil
}

// SourceOf returns the name of the secret of which a secret is a copy; empty where it is none.
func SourceOf(o client.Object) types.NamespacedName {
	return nameOf(o.GetAnnotations()[v1beta1.ImagePullSecretSourceKey])
}

// UsersOf returns the jobs that use a copy.
func UsersOf(o client.Object) (users []types.NamespacedName) {
	for user := range strings.SplitSeq(o.GetAnnotations()[v1beta1.ImagePullSecretReferencesKey], ",") {
		if user = strings.TrimSpace(user); user != "" {
			users = append(users, nameOf(user))
		}
	}
	return users
}

// nameOf is the name of an object of the form namespace/name.
func nameOf(key string) types.NamespacedName {
	namespace, name, _ := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Same reports whether two secrets have the same type and data.
func Same(a, b *corev1.Secret) bool {
	return a.Type == b.Type && maps.EqualFunc(a.Data, b.Data, bytes.Equal)
}

// Claim makes the copies of the pull secrets of a job under way, and returns what NodeImages list for them, in the
// order of the job. Notes are about secrets that the job does without.
func (k *Keeper) Claim(
	ctx context.Context, job *v1beta1.ImagePullJob,
) (references []v1beta1.ReferenceObject, notes []note.Note, err error) {
	for _, name := range imagepull.PullSecretsOf(job) {
		if job.Namespace == k.namespace {
			references = append(references, v1beta1.ReferenceObject{Namespace: k.namespace, Name: name})
			continue
		}
		plan, err := k.settle(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name}, true)
		switch {
		case err != nil:
			return nil, notes, err
		case plan.Problem != nil:
			notes = append(notes, *plan.Problem)
		case plan.Reference.Name == "": // the job has ended meanwhile
		default:
			references = append(references, plan.Reference)
		}
	}
	return references, notes, nil
}

// Release deletes the copies that a job used which has ended, or is gone. A copy that other jobs use stays, and lists
// the job until it is settled again, at the next Refresh at the latest: many jobs may end at once.
func (k *Keeper) Release(ctx context.Context, job types.NamespacedName) error {
	copies, err := k.list(ctx, client.MatchingFields{copyField: "user:" + job.String()})
	for _, s := range copies {
		users, failed := k.users(ctx, SourceOf(s))
		if failed == nil && len(users) == 0 {
			_, failed = k.settle(ctx, SourceOf(s), false)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// Refresh reads secrets again, updates their copies, and deletes all copies that no job under way uses. It calls
// requeue with the users of a secret that nodes can use now, or no longer.
func (k *Keeper) Refresh(
	ctx context.Context, secrets []types.NamespacedName, requeue func(user types.NamespacedName),
) error {
	copies, err := k.list(ctx)
	before := map[types.NamespacedName]source{}
	for _, name := range secrets {
		before[name] = k.known.Recall(name)
	}
	for _, s := range copies {
		if name := SourceOf(s); name.Name != "" {
			before[name] = k.known.Recall(name)
		}
	}
	for name, was := range before {
		k.known.Note(name, func(s *source) { s.read = false })
		if _, failed := k.settle(ctx, name, false); failed != nil {
			if k.known.Recall(name) != (source{}) { // its users know what was read before
				k.known.Note(name, func(s *source) { *s = was })
			}
			err = errors.Join(err, failed)
			continue
		}
		if now := k.known.Recall(name); was.problem != now.problem {
			users, failed := k.users(ctx, name)
			err = errors.Join(err, failed)
			for _, user := range users {
				requeue(nameOf(user))
			}
		}
	}
	return err
}

// Forget drops what was written of a copy that is gone.
func (k *Keeper) Forget(s *corev1.Secret) { k.writes.Forget(SourceOf(s)) }

// settle makes the copy of a secret what it should be.
func (k *Keeper) settle(
	ctx context.Context, name types.NamespacedName, keepUsers bool,
) (plan imagepull.CopyPlan, err error) {
	defer k.turns.Take(name.String())()
	in := imagepull.CopyInput{Source: name, Namespace: k.namespace, KeepUsers: keepUsers}
	if in.Users, err = k.users(ctx, name); err != nil {
		return plan, err
	}
	cached, err := k.list(ctx, client.MatchingFields{copyField: "source:" + name.String()})
	if err != nil {
		return plan, err
	}
	if in.Copies, _, err = k.writes.Overlay(ctx, name, cached); err != nil {
		return plan, err
	}
	if len(in.Users) == 0 {
		k.known.Forget(name)
	} else if in.Secret, err = k.source(ctx, name); err != nil {
		return plan, err
	}
	plan = imagepull.PlanCopy(in)
	if plan.Problem != nil {
		k.known.Note(name, func(s *source) { s.problem = plan.Problem.Text })
	}
	for _, s := range plan.Delete {
		w := &write.Write{Verb: write.Delete, Object: s, SameVersion: true}
		if _, err := k.api.Send(ctx, name, w, k.writes); client.IgnoreNotFound(err) != nil {
			return plan, fmt.Errorf("delete copy %s of pull secret: %w", s.Name, err)
		}
	}
	if len(in.Users) == 0 {
		return plan, k.forgetDeleted(ctx, name)
	}
	if plan.Apply == nil {
		return plan, nil
	}
	if _, err := k.api.Send(ctx, name, &write.Write{
		Verb: write.Patch, Object: plan.Apply, Type: types.ApplyPatchType, FieldOwner: fieldOwner, Force: true,
		Body: body{plan.Apply},
	}, k.writes); err != nil {
		return plan, fmt.Errorf("apply copy %s of pull secret: %w", plan.Apply.Name, err)
	}
	return plan, nil
}

// forgetDeleted drops what was written of the copies of a secret where the cache has none: the events of their deletion
// may have come before the answers.
func (k *Keeper) forgetDeleted(ctx context.Context, name types.NamespacedName) error {
	copies, err := k.list(ctx, client.MatchingFields{copyField: "source:" + name.String()})
	if err == nil && len(copies) == 0 {
		k.writes.Forget(name)
	}
	return err
}

// body is the body of the apply of a copy.
type body struct{ copy *corev1.Secret }

// Data returns the copy as JSON.
func (b body) Data() ([]byte, error) { return json.Marshal(b.copy) }

// source is a pull secret in the namespace of its jobs, read once until the next Refresh; nil where there is none.
func (k *Keeper) source(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	if known := k.known.Recall(name); known.read {
		return known.secret, nil
	}
	secret, err := stored.Find[corev1.Secret](ctx, k.api.Live, name)
	if err != nil {
		return nil, err
	}
	if secret != nil {
		secret = &corev1.Secret{Type: secret.Type, Data: imagepull.PullSecretData(secret)}
	}
	k.known.Note(name, func(s *source) { *s = source{read: true, secret: secret} })
	return secret, nil
}

func (k *Keeper) list(ctx context.Context, o ...client.ListOption) ([]*corev1.Secret, error) {
	var list corev1.SecretList
	err := k.copies.List(ctx, &list, append(o, client.InNamespace(k.namespace), client.UnsafeDisableDeepCopy)...)
	if err != nil {
		return nil, fmt.Errorf("list copies of pull secrets: %w", err)
	}
	return stored.Pointers(list.Items), nil
}
