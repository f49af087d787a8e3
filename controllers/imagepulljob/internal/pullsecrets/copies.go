package pullsecrets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// copyField is the name of the index of copies, by what was copied and by who uses it.
const copyField = "kruisekit.dev/pull-secret"

func keyOfSource(key string) string { return "source:" + key }
func keyOfUser(job string) string   { return "user:" + job }

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
	err = copies.IndexField(ctx, &corev1.Secret{}, copyField, func(o client.Object) []string {
		keys := []string{keyOfSource(o.GetAnnotations()[v1beta1.ImagePullSecretSourceKey])}
		for _, user := range Users(o) {
			keys = append(keys, keyOfUser(user))
		}
		return keys
	})
	if err != nil {
		return nil, fmt.Errorf("index pull secrets: %w", err)
	}
	if err := mgr.Add(copies); err != nil {
		return nil, fmt.Errorf("add cache of pull secrets: %w", err)
	}
	k.copies = copies
	return copies, nil
}

// Users are the jobs that use a copy, each as namespace/name.
func Users(o client.Object) []string {
	users := strings.FieldsFunc(o.GetAnnotations()[v1beta1.ImagePullSecretReferencesKey], func(c rune) bool {
		return c == ',' || c == ' '
	})
	slices.Sort(users)
	return slices.Compact(users)
}

// Claim brings the pull secrets of a job to where nodes may read them. The plan has the references for nodes also where
// it cannot be executed.
func (k *Keeper) Claim(ctx context.Context, job *v1beta1.ImagePullJob) (imagepull.ClaimPlan, error) {
	defer k.claiming.lock(job.Namespace)()
	c := imagepull.Claim{Job: job, Namespace: k.namespace}
	for _, name := range imagepull.PullSecretsOf(job) {
		if job.Namespace == k.namespace {
			break
		}
		secret, err := k.source(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name})
		if err != nil {
			return imagepull.ClaimPlan{}, err
		}
		if secret != nil {
			c.Sources = append(c.Sources, secret)
		}
	}
	return k.settle(ctx, c)
}

// Release gives up the copies that an ended job uses.
func (k *Keeper) Release(ctx context.Context, ended *v1beta1.ImagePullJob) error {
	defer k.claiming.lock(ended.Namespace)()
	_, err := k.settle(ctx, imagepull.Claim{Job: ended, Namespace: k.namespace})
	return err
}

// settle reads the copies that a claim is about, and writes what is to change. What is released goes first.
func (k *Keeper) settle(ctx context.Context, c imagepull.Claim) (imagepull.ClaimPlan, error) {
	var err error
	if c.Copies, err = k.copiesOf(ctx, c.Job); err != nil {
		return imagepull.ClaimPlan{}, err
	}
	plan := imagepull.Secrets(c)
	for _, s := range plan.Delete {
		options := client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}
		if err := k.api.Client.Delete(ctx, s.DeepCopy(), options); client.IgnoreNotFound(err) != nil {
			return plan, fmt.Errorf("delete copy %s of pull secret: %w", s.Name, err)
		}
		k.writes.Deleted(sourceOf(s), s)
	}
	for _, s := range plan.Update {
		if err := k.api.Client.Update(ctx, s); err != nil {
			return plan, fmt.Errorf("update copy %s of pull secret: %w", s.Name, err)
		}
		k.writes.Patched(sourceOf(s), s)
	}
	for _, s := range plan.Create {
		if err := k.create(ctx, s); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// create makes a copy. If its name is taken, the next pass knows by whom: by an earlier process that made this very
// copy, or by a stranger.
func (k *Keeper) create(ctx context.Context, s *corev1.Secret) error {
	err := k.api.Client.Create(ctx, s)
	if err == nil {
		k.writes.Created(sourceOf(s), s)
		return nil
	}
	if apierrors.IsAlreadyExists(err) {
		taken := &corev1.Secret{}
		if err := k.api.Live.Get(ctx, client.ObjectKeyFromObject(s), taken); err == nil {
			k.writes.Created(sourceOf(s), taken)
		}
	}
	k.writes.Doubt(sourceOf(s), s, err)
	return fmt.Errorf("create copy %s of pull secret: %w", s.Name, err)
}

// copiesOf are the copies of a job's secrets and those that refer to it, as they are after the own writes.
func (k *Keeper) copiesOf(ctx context.Context, job *v1beta1.ImagePullJob) ([]*corev1.Secret, error) {
	used, err := k.under(ctx, keyOfUser(job.Namespace+"/"+job.Name))
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, s := range used {
		keys = append(keys, s.Annotations[v1beta1.ImagePullSecretSourceKey])
	}
	for _, name := range imagepull.PullSecretsOf(job) {
		keys = append(keys, job.Namespace+"/"+name)
	}
	slices.Sort(keys)
	var all []*corev1.Secret
	for _, key := range slices.Compact(keys) {
		cached, err := k.under(ctx, keyOfSource(key))
		if err != nil {
			return nil, err
		}
		known, _, err := k.writes.Overlay(ctx, Name(key), cached)
		if err != nil {
			return nil, err
		}
		all = append(all, known...)
	}
	return all, nil
}

func (k *Keeper) under(ctx context.Context, key string) ([]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := k.copies.List(ctx, &list, client.MatchingFields{copyField: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list copies of pull secrets: %w", err)
	}
	return stored.Pointers(list.Items), nil
}

// sourceOf a copy is the secret under which writes of it are recorded.
func sourceOf(s *corev1.Secret) types.NamespacedName {
	return Name(s.Annotations[v1beta1.ImagePullSecretSourceKey])
}

// Name is the name of an object of the form namespace/name.
func Name(key string) types.NamespacedName {
	namespace, name, _ := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
