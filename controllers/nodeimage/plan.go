package nodeimage

import (
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// catchUp is how long the reconciler waits for the cache to have the write of another client.
const catchUp = time.Second

// plan is one pass: the decision of package imagepull, and one write.
type plan struct {
	*snapshot

	decision imagepull.UpkeepPlan
}

// identity of an object. A secret has no UID: the one of its name is meant.
type identity struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
	uid  types.UID
}

func jobOf(ref corev1.ObjectReference) identity {
	return identity{jobKind(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID}
}

func secretOf(ref v1beta1.ReferenceObject) identity {
	name := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	return identity{kind: corev1.SchemeGroupVersion.WithKind("Secret"), name: name}
}

// possible reports whether an object can have a name: what has none cannot be asked for, and does not exist.
func possible(name types.NamespacedName) bool {
	for _, part := range []string{name.Namespace, name.Name} {
		if part == "" || len(path.IsValidPathSegmentName(part)) > 0 {
			return false
		}
	}
	return true
}

func newPlan(s *snapshot, o Options) *plan {
	p := &plan{snapshot: s, decision: imagepull.Maintain(imagepull.Upkeep{
		Node: s.node, Image: s.image, Now: s.now,
		ReadyFor: o.CreationDelay, Answer: o.ResponseTimeout, Random: spread(s.name),
		OwnerGone:  func(ref corev1.ObjectReference) bool { return s.gone[jobOf(ref)] },
		SecretGone: func(ref v1beta1.ReferenceObject) bool { return s.gone[secretOf(ref)] },
	})}
	if s.lags && p.decision.Delete {
		p.decision.Delete, p.decision.RequeueAfter = false, catchUp
	}
	return p
}

// spread staggers the nodes.
func spread(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// write returns the write of the decision; nil for none.
func (p *plan) write(images stored.Kind) (*write.Write, error) {
	switch d := &p.decision; {
	case d.Create != nil:
		raw := images.Named(p.key())
		raw.SetLabels(d.Create.Labels)
		return &write.Write{Verb: write.Create, Object: raw}, nil
	case d.Delete:
		return images.Deletion(p.image), nil
	case d.Update != nil:
		return images.Update(p.image, d.Update)
	case d.Status != nil:
		return stored.WriteNodeImageStatus(images, p.image, d.Status)
	}
	return nil, nil
}
