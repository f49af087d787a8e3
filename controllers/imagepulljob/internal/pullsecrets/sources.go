package pullsecrets

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// sources remembers the pull secrets of jobs under way, as they were read last. Jobs that name the same secret share a
// read.
type sources struct {
	mu sync.Mutex
	// known has nil for what does not exist.
	known map[types.NamespacedName]*corev1.Secret
	// forgotten counts what the watch has reported.
	forgotten int
}

func (s *sources) recall(key types.NamespacedName) (secret *corev1.Secret, known bool, forgotten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	secret, known = s.known[key]
	return secret, known, s.forgotten
}

// learn notes what was read, unless the watch has reported something meanwhile: that may be what the read has missed.
func (s *sources) learn(key types.NamespacedName, secret *corev1.Secret, forgotten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten == forgotten {
		s.put(key, secret)
	}
}

// note reports whether the secret is another than before.
func (s *sources) note(key types.NamespacedName, secret *corev1.Secret) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.known[key]
	s.put(key, secret)
	return !known || !Same(before, secret)
}

func (s *sources) put(key types.NamespacedName, secret *corev1.Secret) {
	if s.known == nil {
		s.known = map[types.NamespacedName]*corev1.Secret{}
	}
	s.known[key] = secret
}

// keep forgets all but some.
func (s *sources) keep(named map[types.NamespacedName][]*v1beta1.ImagePullJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(key types.NamespacedName, _ *corev1.Secret) bool { return named[key] == nil })
}

func (s *sources) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
	s.forgotten++
}

// Same reports whether two secrets have the same type and data.
func Same(a, b *corev1.Secret) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && maps.EqualFunc(a.Data, b.Data, bytes.Equal)
}

// source is a pull secret in the namespace of its job; nil where it does not exist. It is read once: Changed or Touched
// notice later changes.
func (k *Keeper) source(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	if k.unobserved {
		return k.read(ctx, key)
	}
	secret, known, forgotten := k.sources.recall(key)
	if known {
		return secret, nil
	}
	secret, err := k.read(ctx, key)
	if err == nil {
		k.sources.learn(key, secret, forgotten)
	}
	return secret, err
}

// read returns of a secret what its copies have; nil where it does not exist.
func (k *Keeper) read(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret, err := stored.Find[corev1.Secret](ctx, k.api.Live, key)
	if err != nil || secret == nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Type:       secret.Type,
		Data:       imagepull.PullSecretData(secret),
	}, nil
}

// Changed reads the pull secrets of jobs again, and calls changed with each job of which one is another than before. It
// forgets all other secrets. What no job has read yet is left to the jobs. One that cannot be read is an error beside
// the rest.
func (k *Keeper) Changed(ctx context.Context, jobs []*v1beta1.ImagePullJob, changed func(*v1beta1.ImagePullJob)) error {
	named := map[types.NamespacedName][]*v1beta1.ImagePullJob{}
	for _, job := range jobs {
		for _, name := range imagepull.PullSecretsOf(job) {
			key := types.NamespacedName{Namespace: job.Namespace, Name: name}
			named[key] = append(named[key], job)
		}
	}
	k.sources.keep(named)
	var errs []error
	for key, users := range named {
		if _, known, _ := k.sources.recall(key); !known {
			continue
		}
		secret, err := k.read(ctx, key)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if k.sources.note(key, secret) {
			for _, job := range users {
				changed(job)
			}
		}
	}
	return errors.Join(errs...)
}

// Touched forgets a secret that a watch reports.
func (k *Keeper) Touched(key types.NamespacedName) { k.sources.forget(key) }
