package nodeimage

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// plan is one pass: the decision of package imagepull, which may first need answers of the API server, and one write.
type plan struct {
	*snapshot

	options  Options
	decision imagepull.UpkeepPlan
	// learned is what the API server has answered.
	learned map[identity]bool
	failed  []error
}

// identity of an object. A secret has no UID: the one of its name is meant.
type identity struct {
	kind string
	name types.NamespacedName
	uid  types.UID
}

const (
	secretKind = "Secret"
	nodeKind   = "Node"
)

func jobIdentity(name types.NamespacedName, uid types.UID) identity {
	return identity{jobKind().Kind, name, uid}
}

func jobOf(ref corev1.ObjectReference) identity {
	return jobIdentity(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID)
}

func secretOf(ref v1beta1.ReferenceObject) identity {
	return identity{kind: secretKind, name: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
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

func (id identity) gvk() schema.GroupVersionKind {
	if id.kind == jobKind().Kind {
		return jobKind()
	}
	return corev1.SchemeGroupVersion.WithKind(id.kind)
}

func newPlan(s *snapshot, o Options) *plan {
	return &plan{snapshot: s, options: o, learned: map[identity]bool{}}
}

// decide makes the decision, and returns the objects that it depends on and of which nothing is known. These count as
// gone meanwhile, so that the decision asks for no more objects than it takes. Where a question has failed they count
// as there: what they are for stays. A NodeImage whose node the cache lacks depends on the node.
func (p *plan) decide() (unknown []identity) {
	open := map[identity]bool{}
	gone := func(id identity) bool {
		if id.kind != nodeKind && !possible(id.name) {
			return true
		}
		for _, facts := range []map[identity]bool{p.known, p.learned} {
			if gone, known := facts[id]; known {
				return gone
			}
		}
		if len(p.failed) > 0 {
			return false
		}
		if !open[id] {
			open[id], unknown = true, append(unknown, id)
		}
		return true
	}
	upkeep := imagepull.Upkeep{
		Node: p.node, Image: p.image, Now: p.now,
		ReadyFor: p.options.CreationDelay, Answer: p.options.ResponseTimeout, Random: spread(p.name),
		SecretGone: func(ref v1beta1.ReferenceObject) bool {
			return ref.Namespace == p.options.SecretNamespace && gone(secretOf(ref)) // of others nothing is known
		},
	}
	if !p.jobless {
		upkeep.OwnerGone = func(ref corev1.ObjectReference) bool { return gone(jobOf(ref)) }
	}
	p.decision = imagepull.Maintain(upkeep)
	if p.decision.Delete && p.node == nil {
		p.decision.Delete = gone(identity{kind: nodeKind, name: p.key()})
	}
	return unknown
}

// spread has not all nodes looked at in the same moment.
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
		return writeStatus(images, p.image, d.Status)
	}
	return nil, nil
}

// learn takes what the API server says of an object. A job or a secret that it does not allow to be read counts as
// there: another question would not help.
func (p *plan) learn(id identity, answer write.Object, err error) {
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err)
	switch {
	case apierrors.IsNotFound(err):
		p.learned[id] = true
	case refused && id.kind != nodeKind:
		p.learned[id] = false
	case err != nil:
		p.failed = append(p.failed, fmt.Errorf("read %s %s: %w", id.kind, id.name, err))
	case id.kind == nodeKind:
		p.learned[id] = answer.GetDeletionTimestamp() != nil
	default:
		p.learned[id] = id.kind == jobKind().Kind && answer.GetUID() != id.uid
	}
}

// wait returns when to look again where nothing is written.
func (p *plan) wait() time.Duration {
	if gone, asked := p.learned[identity{kind: nodeKind, name: p.key()}]; asked && !gone {
		return catchUp // the cache lacks the node
	}
	return p.decision.RequeueAfter
}
