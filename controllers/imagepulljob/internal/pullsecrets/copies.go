package pullsecrets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
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

// settle reads the copies that a claim is about, and writes what is to change.
func (k *Keeper) settle(ctx context.Context, c imagepull.Claim) (imagepull.ClaimPlan, error) {
	var err error
	if c.Copies, err = k.copiesOf(ctx, c.Job); err != nil {
		return imagepull.ClaimPlan{}, err
	}
	p := plan{ClaimPlan: imagepull.Secrets(c), copies: c.Copies}
	err = k.api.Run(ctx, types.NamespacedName{}, p.pass(), bySource{k.writes})
	for source, s := range p.taken {
		k.writes.Created(source, s)
	}
	return p.ClaimPlan, err
}

// bySource records the writes of copies under the secrets that were copied.
type bySource struct {
	writes *ledger.Ledger[*corev1.Secret]
}

// Record implements driver.Recorder.
func (l bySource) Record(_ types.NamespacedName, w *write.Write, answer write.Object, err error) {
	l.writes.Record(sourceOf(w.Object), w, answer, err)
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
func sourceOf(s metav1.Object) types.NamespacedName {
	return Name(s.GetAnnotations()[v1beta1.ImagePullSecretSourceKey])
}

// Name is the name of an object of the form namespace/name.
func Name(key string) types.NamespacedName {
	namespace, name, _ := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
