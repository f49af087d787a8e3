package imagepulljob

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
	"github.com/kruisekit/kruisekit/note"
)

// copyField is the name of the index of copies, by what was copied and by who uses it.
const copyField = "kruisekit.dev/pull-secret"

func keyOfSource(key string) string { return "source:" + key }
func keyOfUser(job string) string   { return "user:" + job }

// keepCopies makes a cache of the secrets in the nodes' namespace. The manager's would ask for those of the whole cluster.
func (r *Reconciler) keepCopies(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	copies, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{r.options.SecretNamespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("make cache of pull secrets: %w", err)
	}
	err = copies.IndexField(ctx, &corev1.Secret{}, copyField, func(o client.Object) []string {
		keys := []string{keyOfSource(o.GetAnnotations()[v1beta1.ImagePullSecretSourceKey])}
		for _, user := range usersOf(o) {
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
	r.copies = copies
	return copies, nil
}

// usersOf a copy, each namespace/name of a job.
func usersOf(o client.Object) []string {
	users := strings.FieldsFunc(o.GetAnnotations()[v1beta1.ImagePullSecretReferencesKey], func(c rune) bool { return c == ',' || c == ' ' })
	slices.Sort(users)
	return slices.Compact(users)
}

// claim brings the pull secrets of the job to where nodes may read them. The finalizer comes first: it sees to it that they
// are released.
func (p *pass) claim(ctx context.Context) error {
	if len(p.job.Spec.PullSecrets) == 0 && !p.isHeld() {
		return nil
	}
	elsewhere := p.job.Namespace != p.options.SecretNamespace
	if elsewhere && !p.isHeld() {
		if err := p.hold(ctx); err != nil {
			return err
		}
	}
	p.claiming.Lock()
	defer p.claiming.Unlock()
	c := imagepull.Claim{Job: p.job, Namespace: p.options.SecretNamespace}
	for _, name := range p.job.Spec.PullSecrets {
		if !elsewhere {
			break
		}
		secret, err := p.source(ctx, types.NamespacedName{Namespace: p.job.Namespace, Name: name})
		if err != nil {
			p.unplace(err)
			return err
		}
		if secret != nil {
			c.Sources = append(c.Sources, secret)
		}
	}
	plan, err := p.settle(ctx, c)
	p.secrets, p.notes = plan.References, plan.Notes
	p.unplace(err)
	return err
}

// unplace keeps an error for the status and an event, if it is one that stays until somebody does something.
func (p *pass) unplace(err error) {
	if apierrors.IsNotFound(err) || isFinal(err) {
		p.unplaced = err
		p.notes = append(p.notes, note.Note{Code: noteUnplaced, Object: p.options.SecretNamespace, Text: err.Error()})
	}
}

// release gives up the copies that a job uses.
func (r *Reconciler) release(ctx context.Context, ended *v1beta1.ImagePullJob) error {
	r.claiming.Lock()
	defer r.claiming.Unlock()
	_, err := r.settle(ctx, imagepull.Claim{Job: ended, Namespace: r.options.SecretNamespace})
	return err
}

// settle reads the copies that a claim is about, and writes what is to change. What is released goes first.
func (r *Reconciler) settle(ctx context.Context, c imagepull.Claim) (imagepull.ClaimPlan, error) {
	var err error
	if c.Copies, err = r.copiesOf(ctx, c.Job); err != nil {
		return imagepull.ClaimPlan{}, err
	}
	plan := imagepull.Secrets(c)
	for _, s := range plan.Delete {
		options := client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}
		if err := r.client.Delete(ctx, s.DeepCopy(), options); client.IgnoreNotFound(err) != nil {
			return plan, fmt.Errorf("delete copy %s of pull secret: %w", s.Name, err)
		}
		r.copyWrites.Deleted(sourceOf(s), s)
	}
	for _, s := range plan.Update {
		if err := r.client.Update(ctx, s); err != nil {
			return plan, fmt.Errorf("update copy %s of pull secret: %w", s.Name, err)
		}
		r.copyWrites.Patched(sourceOf(s), s)
	}
	for _, s := range plan.Create {
		if err := r.create(ctx, s); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// create makes a copy. If its name is taken, the next pass knows by whom: by an earlier process that made this very copy, or
// by a stranger.
func (r *Reconciler) create(ctx context.Context, s *corev1.Secret) error {
	err := r.client.Create(ctx, s)
	if err == nil {
		r.copyWrites.Created(sourceOf(s), s)
		return nil
	}
	if apierrors.IsAlreadyExists(err) {
		taken := &corev1.Secret{}
		if err := r.options.Live.Get(ctx, client.ObjectKeyFromObject(s), taken); err == nil {
			r.copyWrites.Created(sourceOf(s), taken)
		}
	}
	r.copyWrites.Doubt(sourceOf(s), s, err)
	return fmt.Errorf("create copy %s of pull secret: %w", s.Name, err)
}

// copiesOf are the copies of a job's secrets and those that refer to it, as they are after the own writes.
func (r *Reconciler) copiesOf(ctx context.Context, job *v1beta1.ImagePullJob) ([]*corev1.Secret, error) {
	used, err := r.copiesUnder(ctx, keyOfUser(job.Namespace+"/"+job.Name))
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, s := range used {
		keys = append(keys, s.Annotations[v1beta1.ImagePullSecretSourceKey])
	}
	for _, name := range job.Spec.PullSecrets {
		keys = append(keys, job.Namespace+"/"+name)
	}
	slices.Sort(keys)
	var all []*corev1.Secret
	for _, key := range slices.Compact(keys) {
		cached, err := r.copiesUnder(ctx, keyOfSource(key))
		if err != nil {
			return nil, err
		}
		known, _, err := r.copyWrites.Overlay(ctx, nameOf(key), cached)
		if err != nil {
			return nil, err
		}
		all = append(all, known...)
	}
	return all, nil
}

func (r *Reconciler) copiesUnder(ctx context.Context, key string) ([]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := r.copies.List(ctx, &list, client.MatchingFields{copyField: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list copies of pull secrets: %w", err)
	}
	secrets := make([]*corev1.Secret, len(list.Items))
	for i := range list.Items {
		secrets[i] = &list.Items[i]
	}
	return secrets, nil
}

// sourceOf a copy is the secret under which writes of it are recorded.
func sourceOf(s *corev1.Secret) types.NamespacedName {
	return nameOf(s.Annotations[v1beta1.ImagePullSecretSourceKey])
}

func nameOf(key string) types.NamespacedName {
	namespace, name, _ := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
