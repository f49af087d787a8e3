package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is what one pass looks at.
type snapshot struct {
	name string
	now  time.Time
	// node is the cache's, and only read; nil for none.
	node *corev1.Node
	// image as it is after the own writes; nil for none.
	image *v1beta1.NodeImage
	// malformed says what of the image cannot be decoded, which then is without it.
	malformed error
	// recheckAfter is when to read the image again where the cache lacks it; zero where it does not.
	recheckAfter time.Duration
	// jobless means that there are no pull jobs in this cluster.
	jobless bool
	// known is which of the owners and secrets that the image names are gone. Of others, the API server has the last
	// word: a cache that lacks an object may lag behind.
	known map[identity]bool
}

// observe makes the snapshot; nil when there is nothing of that name.
func (r *Reconciler) observe(ctx context.Context, name string) (*snapshot, error) {
	s := &snapshot{name: name, now: r.api.Now(), jobless: r.jobless, known: map[identity]bool{}}
	var err error
	if s.node, err = stored.Find[corev1.Node](ctx, r.api.Client, s.key()); err != nil {
		return nil, err
	}
	latest, err := r.images.Latest(ctx, r.api.Cached, s.key())
	switch {
	case err != nil:
		return nil, err
	case !latest.Cached && s.node == nil:
		r.images.Writes.Forget(s.key())
		return nil, nil
	case latest.Object == nil:
		return s, nil
	}
	s.recheckAfter = latest.RecheckAfter
	if s.image, s.malformed, err = decode(latest.Object); err != nil {
		return nil, err
	}
	for _, image := range s.image.Spec.Images {
		r.recallSecrets(s, image.PullSecrets)
		for _, tag := range image.Tags {
			r.observeOwners(ctx, s, tag.OwnerReferences)
		}
	}
	return s, nil
}

// recallSecrets fills in the secrets that existed a moment ago.
func (r *Reconciler) recallSecrets(s *snapshot, refs []v1beta1.ReferenceObject) {
	for _, ref := range refs {
		if _, known := r.recall(secretOf(ref)); known {
			s.known[secretOf(ref)] = false
		}
	}
}

// observeOwners fills in the pull jobs that are known to be gone, and those that exist.
func (r *Reconciler) observeOwners(ctx context.Context, s *snapshot, refs []corev1.ObjectReference) {
	for _, ref := range refs {
		id := jobOf(ref)
		if _, done := s.known[id]; done || r.jobless || ref.Kind != id.kind || !possible(id.name) {
			continue
		}
		gone, known := r.recall(id)
		if gone {
			s.known[id] = true
			continue
		}
		// One that the cache lacks, or has another one of, may be in a namespace that the cache leaves out.
		job, err := stored.Metadata(ctx, r.api.Cached, jobKind(), id.name)
		if known || err == nil && job != nil && job.UID == ref.UID {
			s.known[id] = false
		}
	}
}

// remember keeps what a pass has learned of jobs and secrets, for other nodes that ask the same.
func (r *Reconciler) remember(p *plan) {
	for id, gone := range p.learned {
		if id.kind == jobKind().Kind || id.kind == secretKind && !gone { // a secret may be created again
			r.note(id, gone)
		}
	}
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return types.NamespacedName{Name: s.name} }

// decode reads a NodeImage, or, where the malformed part is not the spec alone, its metadata.
func decode(raw *unstructured.Unstructured) (image *v1beta1.NodeImage, malformed, err error) {
	image, malformed, err = stored.Decode[v1beta1.NodeImage](raw)
	if err == nil {
		return image, malformed, nil
	}
	rest := map[string]any{"apiVersion": raw.GetAPIVersion(), "kind": raw.GetKind(), "metadata": raw.Object["metadata"]}
	malformed, image = err, &v1beta1.NodeImage{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rest, image); err != nil {
		return nil, nil, fmt.Errorf("decode metadata: %w", err)
	}
	return image, malformed, nil
}

const (
	// rememberGone is for how long a job is known to be gone. It bounds memory: a UID never comes back.
	rememberGone = 10 * time.Minute
	// rememberThere is for how long something that was asked for is taken to be there still.
	rememberThere = 5 * time.Minute
	// maxFacts bounds how many objects are remembered.
	maxFacts = 1 << 16
)

// clock is the clock of a cache.
type clock func() time.Time

// Now returns the time.
func (c clock) Now() time.Time { return c() }

// recall returns whether an object is known to be gone, and whether anything is known of it.
func (r *Reconciler) recall(id identity) (gone, known bool) {
	fact, known := r.facts.Get(id)
	gone, _ = fact.(bool)
	return gone, known
}

// note remembers for a while whether an object is gone.
func (r *Reconciler) note(id identity, gone bool) {
	ttl := rememberThere
	if gone {
		ttl = rememberGone
	}
	r.facts.Add(id, gone, ttl)
}
