package imagepull

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// maxReads bounds the secrets that one attempt reads. The entry of a repository lists those of all jobs that pull it.
const maxReads = 64

// credentials returns the credentials of a pull in the order in which they are tried: those of its secrets, then the
// node's. A secret that cannot be read is skipped. So is one that is malformed, which is the error.
func (r *Reconciler) credentials(
	ctx context.Context, p imagepull.Pull,
) (found []imagepull.Credential, malformed error) {
	keyring, malformed := imagepull.NewKeyring(r.secretsOf(ctx, p)...)
	if malformed != nil {
		malformed = fmt.Errorf("pulling without a secret: %w", malformed)
		log.FromContext(ctx).Error(malformed, "Skipped malformed secrets", "image", p.Reference.String())
	}
	repository := p.Reference.Repository()
	found = keyring.Lookup(repository)
	if r.options.Keyring == nil {
		return found, malformed
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
	return found, malformed
}

// secretsOf returns the secrets that a pull may use, in their order. Those that were listed last are read first.
func (r *Reconciler) secretsOf(ctx context.Context, p imagepull.Pull) []*corev1.Secret {
	var secrets []*corev1.Secret
	reads := 0
	for _, ref := range slices.Backward(p.Secrets) {
		if reads == maxReads {
			log.FromContext(ctx).Info("Skipped secrets that are left to the next attempt",
				"image", p.Reference.String(), "secrets", len(p.Secrets))
			break
		}
		s, asked, err := r.secrets.read(ctx, keyOf(ref), p.Tag)
		if asked {
			reads++
		}
		switch {
		case err != nil:
			log.FromContext(ctx).Error(err, "Pulling without a secret",
				"image", p.Reference.String(), "secret", keyOf(ref).String())
		case s != nil:
			secrets = append(secrets, s)
		}
	}
	slices.Reverse(secrets)
	return secrets
}

// distrust forgets what is known of a pull's credentials.
func (r *Reconciler) distrust(p imagepull.Pull) {
	for _, ref := range p.Secrets {
		r.secrets.forget(keyOf(ref), p.Tag)
	}
	if r.options.Keyring != nil {
		r.options.Keyring.Forget(p.Reference.Repository())
	}
}

func keyOf(ref v1beta1.ReferenceObject) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}
