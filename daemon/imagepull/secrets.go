package imagepull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// secretTimeout bounds the read of one secret. Others wait meanwhile.
const secretTimeout = 10 * time.Second

// credentials of a pull, in the order in which they are tried: its secrets first, the node's after them. A secret that
// cannot be read is passed over, one that says nonsense is not.
func (r *Reconciler) credentials(ctx context.Context, p imagepull.Pull) ([]imagepull.Credential, error) {
	var secrets []*corev1.Secret
	for _, ref := range p.Secrets {
		s, err := r.secrets.read(ctx, keyOf(ref))
		if err != nil {
			log.FromContext(ctx).Error(err, "Pulling without a secret", "image", p.Reference.String(), "secret", keyOf(ref).String())
			continue
		}
		secrets = append(secrets, s)
	}
	keyring, err := imagepull.NewKeyring(secrets...)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	repository := p.Reference.Repository()
	found := keyring.Lookup(repository)
	if r.options.Keyring == nil {
		return found, nil
	}
	more, err := r.options.Keyring.Lookup(ctx, repository)
	if err != nil {
		log.FromContext(ctx).Error(err, "Pulling without some of the node's credentials", "image", p.Reference.String())
	}
	for _, c := range more {
		if !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	return found, nil
}

// distrust what was said about a pull's credentials.
func (r *Reconciler) distrust(p imagepull.Pull) {
	for _, ref := range p.Secrets {
		r.secrets.forget(keyOf(ref))
	}
	if r.options.Keyring != nil {
		r.options.Keyring.Forget(p.Reference.Repository())
	}
}

func keyOf(ref v1beta1.ReferenceObject) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// secretMemory spares the API server: a node's pulls have few secrets between them.
type secretMemory struct {
	reader client.Reader
	ttl    time.Duration
	now    func() time.Time

	mu   sync.Mutex
	kept map[types.NamespacedName]keptSecret
}

// keptSecret without a secret is one to read past the caches of the API server.
type keptSecret struct {
	secret *corev1.Secret
	at     time.Time
}

func newSecretMemory(o Options) *secretMemory {
	return &secretMemory{reader: o.Secrets, ttl: o.SecretTTL, now: o.Now, kept: map[types.NamespacedName]keptSecret{}}
}

// read holds up other readers, who most likely want the same secret.
func (m *secretMemory) read(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	if m.reader == nil {
		return nil, errors.New("there is nothing to read secrets with")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for k, s := range m.kept {
		if now.Sub(s.at) >= m.ttl {
			delete(m.kept, k)
		}
	}
	known, there := m.kept[key]
	if there && known.secret != nil {
		return known.secret, nil
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	var options []client.GetOption
	if !there && m.ttl > 0 {
		// From the memory of any API server, which may lag behind.
		options = append(options, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
	}
	s := &corev1.Secret{}
	if err := m.reader.Get(ctx, key, s, options...); err != nil {
		return nil, fmt.Errorf("read secret %s: %w", key, err)
	}
	m.kept[key] = keptSecret{secret: s, at: now}
	return s, nil
}

func (m *secretMemory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.kept[key]; there {
		m.kept[key] = keptSecret{at: m.now()}
	}
}
