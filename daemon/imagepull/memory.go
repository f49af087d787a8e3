package imagepull

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

const (
	// secretTimeout bounds the read of one secret.
	secretTimeout = 10 * time.Second
	// absentTTL is how long a secret that does not exist is not read again. References to copies stay in a NodeImage when
	// their job has ended, and no later copy has the name of an earlier one.
	absentTTL = 10 * time.Second
	// maxKept bounds what is remembered, in bytes.
	maxKept = 4 << 20
)

// errAbsent is a secret that was found not to exist a moment ago.
var errAbsent = errors.New("the secret did not exist a moment ago")

// secretMemory spares the API server: a node's pulls have few secrets between them.
type secretMemory struct {
	reader client.Reader
	ttl    time.Duration
	now    func() time.Time

	// mu is never held during a read.
	mu   sync.Mutex
	kept map[types.NamespacedName]*keptSecret
}

// keptSecret is what is known of a secret.
type keptSecret struct {
	// reading is held by the reader. Others who want the same secret wait for it.
	reading sync.Mutex

	// secret is nil where it is not known. Of one that the last reader may not use the metadata are kept alone.
	secret *corev1.Secret
	at     time.Time
	// absent is since when the secret is known not to exist; zero where it is not.
	absent time.Time
	// fresh asks for a read past the caches of the API server.
	fresh bool
}

func newSecretMemory(o Options) *secretMemory {
	return &secretMemory{reader: o.Secrets, ttl: o.SecretTTL, now: o.Now, kept: map[types.NamespacedName]*keptSecret{}}
}

// read returns a secret that a pull of a tag may use, or nil, and whether the API server was asked. A secret that is
// remembered is read again where the pull may use it, or may come to, and that is not what is remembered.
func (m *secretMemory) read(
	ctx context.Context, key types.NamespacedName, t v1beta1.ImageTagSpec,
) (s *corev1.Secret, asked bool, err error) {
	if m.reader == nil {
		return nil, false, errors.New("there is nothing to read secrets with")
	}
	kept := m.entry(key)
	kept.reading.Lock()
	defer kept.reading.Unlock()
	m.mu.Lock()
	s, fresh, absent := kept.secret, kept.fresh, m.now().Sub(kept.absent) < absentTTL
	m.mu.Unlock()
	switch {
	case absent:
		return nil, false, errAbsent
	case s == nil:
	case !imagepull.MayUse(s, t):
		if !imagepull.MayComeToUse(s, t) {
			return nil, false, nil
		}
		fresh = true
	case s.Data != nil:
		return s, false, nil
	}
	s, err = m.fetch(ctx, key, t, fresh)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.makeRoom(s)
	m.kept[key] = kept
	kept.secret, kept.at, kept.absent, kept.fresh = s, m.now(), time.Time{}, false
	if apierrors.IsNotFound(err) && m.ttl > 0 {
		kept.absent = kept.at
	}
	if err != nil || s.Data == nil {
		return nil, true, err
	}
	return s, true, nil
}

// makeRoom forgets all secrets where another one would be too much.
func (m *secretMemory) makeRoom(s *corev1.Secret) {
	bytes := 0
	for _, kept := range m.kept {
		bytes += sizeOf(kept.secret)
	}
	if bytes+sizeOf(s) > maxKept {
		clear(m.kept)
	}
}

func sizeOf(s *corev1.Secret) int {
	if s == nil {
		return 0
	}
	n := 512 // of metadata
	for _, values := range []map[string]string{s.Annotations, s.Labels} {
		for key, value := range values {
			n += len(key) + len(value)
		}
	}
	for _, value := range s.Data {
		n += len(value)
	}
	return n
}

// entry returns what is known of a secret, and forgets what is too old.
func (m *secretMemory) entry(key types.NamespacedName) *keptSecret {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for k, s := range m.kept {
		if now.Sub(s.at) >= m.ttl {
			delete(m.kept, k)
		}
	}
	if m.kept[key] == nil {
		m.kept[key] = &keptSecret{at: now}
	}
	return m.kept[key]
}

// fetch reads a secret from the memory of any API server, unless it must be fresh. That memory may lag behind: a secret
// which is missing there is read once more. One that a pull of the tag may not use has no data.
func (m *secretMemory) fetch(
	ctx context.Context, key types.NamespacedName, t v1beta1.ImageTagSpec, fresh bool,
) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	s, err := &corev1.Secret{}, error(nil)
	if !fresh && m.ttl > 0 {
		err = m.reader.Get(ctx, key, s, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
		fresh = apierrors.IsNotFound(err)
	} else {
		fresh = true
	}
	if fresh {
		err = m.reader.Get(ctx, key, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", key, err)
	}
	data := map[string][]byte(nil)
	if imagepull.MayUse(s, t) {
		data = map[string][]byte{}
		maps.Copy(data, imagepull.PullSecretData(s))
	}
	s.Data, s.ManagedFields = data, nil
	return s, nil
}

// forget has a secret that a pull of a tag may use read again.
func (m *secretMemory) forget(key types.NamespacedName, t v1beta1.ImageTagSpec) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept := m.kept[key]; kept != nil && kept.secret != nil && imagepull.MayUse(kept.secret, t) {
		kept.secret, kept.fresh = nil, true
	}
}
