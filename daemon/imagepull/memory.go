package imagepull

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

const (
	// secretTTL is how long a secret is remembered, unless a registry refuses its credentials before.
	secretTTL = 5 * time.Minute
	// secretTimeout bounds the read of one secret.
	secretTimeout = 10 * time.Second
	// absentTTL is how long a secret that does not exist is not read again. References to copies stay in a NodeImage when
	// their job has ended.
	absentTTL = 10 * time.Second
	// maxKept bounds how many secrets are remembered, each of at most imagepull.MaxPullSecretBytes.
	maxKept = 64
)

// secretMemory spares the API server: a node's pulls have few secrets between them.
type secretMemory struct {
	reader client.Reader
	// kept has a *corev1.Secret by its name, nil for one that does not exist. One without a resource version is
	// to be read again.
	kept *cache.LRUExpireCache
}

// clock is the clock of a cache.
type clock func() time.Time

// Now returns the time.
func (c clock) Now() time.Time { return c() }

func newSecretMemory(reader client.Reader, now func() time.Time) *secretMemory {
	return &secretMemory{reader: reader, kept: cache.NewLRUExpireCacheWithClock(maxKept, clock(now))}
}

// read returns a secret that a pull of a tag may use, or nil, and whether the API server was asked. A secret that is
// remembered is read again where the pull may come to use it, and may not use what is remembered.
func (m *secretMemory) read(
	ctx context.Context, key types.NamespacedName, t v1beta1.ImageTagSpec,
) (s *corev1.Secret, asked bool, err error) {
	if m.reader == nil {
		return nil, false, errors.New("there is nothing to read secrets with")
	}
	s, known := m.recall(key)
	switch {
	case known && s == nil:
		return nil, false, nil
	case known && imagepull.MayUse(s, t):
		if s.ResourceVersion != "" {
			return s, false, nil
		}
	case known && !imagepull.MayComeToUse(s, t):
		return nil, false, nil
	}
	s, err = m.fetch(ctx, key, known)
	switch {
	case apierrors.IsNotFound(err):
		m.kept.Add(key, s, absentTTL)
		return nil, true, err
	case err != nil:
		return nil, true, err
	}
	m.kept.Add(key, s, secretTTL)
	if !imagepull.MayUse(s, t) {
		return nil, true, nil
	}
	return s, true, nil
}

func (m *secretMemory) recall(key types.NamespacedName) (s *corev1.Secret, known bool) {
	kept, known := m.kept.Get(key)
	s, _ = kept.(*corev1.Secret)
	return s, known
}

// fetch reads a secret from the memory of any API server, unless it must be fresh. That memory may lag behind: a secret
// which is missing there is read once more.
func (m *secretMemory) fetch(ctx context.Context, key types.NamespacedName, fresh bool) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	s, err := &corev1.Secret{}, error(nil)
	if !fresh {
		err = m.reader.Get(ctx, key, s, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
		fresh = apierrors.IsNotFound(err)
	}
	if fresh {
		err = m.reader.Get(ctx, key, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", key, err)
	}
	s.Data, s.ManagedFields = imagepull.PullSecretData(s), nil
	return s, nil
}

// forget has a secret that a pull of a tag may use read again, past the memory of API servers.
func (m *secretMemory) forget(key types.NamespacedName, t v1beta1.ImageTagSpec) {
	if s, known := m.recall(key); known && s != nil && imagepull.MayUse(s, t) {
		stale := s.DeepCopy()
		stale.ResourceVersion = ""
		m.kept.Add(key, stale, secretTTL)
	}
}
