package nodeimage

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// catchUp is how long the reconciler waits for the cache to have the write of another client.
const catchUp = time.Second

// plan is one pass, a driver.Pass: it asks which owners and secrets are gone, decides with package imagepull, and makes
// the one write of the decision, if any.
type plan struct {
	*snapshot

	options Options
	images  stored.Kind

	decision imagepull.UpkeepPlan
	// decided reports whether all questions are asked.
	decided bool
	// asked are the objects that questions are about, and learned what the answers say.
	asked   map[*write.Write]identity
	learned map[identity]bool
	// ended reports whether pulls were ended in place of the node.
	ended bool
	// wait is when to look again after the write.
	wait   time.Duration
	failed []error
}

// identity of an object. A secret has no UID: the one of its name is meant.
type identity struct {
	kind string
	name types.NamespacedName
	uid  types.UID
}

const secretKind = "Secret"

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

func newPlan(s *snapshot, o Options, images stored.Kind) *plan {
	return &plan{
		snapshot: s, options: o, images: images, asked: map[*write.Write]identity{}, learned: map[identity]bool{},
	}
}

// Next returns questions for as long as the decision depends on objects of which nothing is known, and then the write.
func (p *plan) Next() []*write.Write {
	if p.decided {
		return nil
	}
	var questions []*write.Write
	for _, id := range p.decide() {
		question := &write.Write{Verb: write.Get, Object: stored.MetadataOf(id.gvk(), id.name)}
		p.asked[question] = id
		questions = append(questions, question)
	}
	if len(questions) > 0 {
		return questions
	}
	p.decided = true
	w, err := p.write()
	if err != nil {
		p.failed = append(p.failed, err)
	}
	if w == nil {
		return nil
	}
	return []*write.Write{w}
}

func (id identity) gvk() schema.GroupVersionKind {
	if id.kind == secretKind {
		return corev1.SchemeGroupVersion.WithKind(secretKind)
	}
	return jobKind()
}

// decide makes the decision, and returns the objects that it depends on and of which nothing is known. These count as
// gone meanwhile, so that the decision asks for no more objects than it takes. Where a question has failed they count
// as there: what they are for stays.
func (p *plan) decide() (unknown []identity) {
	open := map[identity]bool{}
	gone := func(id identity) bool {
		if !possible(id.name) {
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
	return unknown
}

// spread has not all nodes looked at in the same moment.
func spread(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// write returns the write of the decision; nil for none. Before a NodeImage is deleted whose node the cache lacks, the
// API server is asked for the node.
func (p *plan) write() (*write.Write, error) {
	switch d := &p.decision; {
	case d.Create != nil:
		raw := p.images.Named(p.key())
		raw.SetLabels(d.Create.Labels)
		return &write.Write{Verb: write.Create, Object: raw}, nil
	case d.Delete && p.node == nil:
		node := stored.MetadataOf(corev1.SchemeGroupVersion.WithKind("Node"), p.key())
		return &write.Write{Verb: write.Get, Object: node}, nil
	case d.Delete:
		return p.images.Deletion(p.image), nil
	case d.Update != nil:
		return p.images.Update(p.image, d.Update)
	case d.Status != nil:
		return p.writeStatus()
	}
	p.wait = p.decision.RequeueAfter
	return nil, nil
}

// Answer takes the answer to a question, or to the write.
func (p *plan) Answer(_ time.Time, w *write.Write, answer write.Object, err error) []*write.Write {
	id, asked := p.asked[w]
	switch {
	case asked:
		p.learn(id, answer, err)
		return nil
	case w.Verb == write.Get:
		return p.answerNode(answer, err)
	case w.Verb == write.Create && apierrors.IsAlreadyExists(err): // its event is on the way
		return nil
	case w.Verb == write.Patch && apierrors.IsConflict(err):
		p.wait = catchUp
		return nil
	case err != nil && (w.Verb == write.Create || !apierrors.IsNotFound(err)):
		p.failed = append(p.failed, fmt.Errorf("%s NodeImage: %w", verb(w), err))
		return nil
	}
	p.ended = w.Subresource == write.Status
	return nil
}

func verb(w *write.Write) string {
	switch w.Verb {
	case write.Create:
		return "create"
	case write.Delete:
		return "delete"
	case write.Patch, write.Get, write.Ask:
	}
	return "patch"
}

// learn takes what the API server says of an object. One that it does not allow to be read counts as there: another
// question would not help.
func (p *plan) learn(id identity, answer write.Object, err error) {
	switch {
	case apierrors.IsNotFound(err):
		p.learned[id] = true
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err):
		p.learned[id] = false
	case err != nil:
		p.failed = append(p.failed, fmt.Errorf("read %s %s: %w", id.kind, id.name, err))
	default:
		p.learned[id] = id.kind != secretKind && answer.GetUID() != id.uid
	}
}

// answerNode deletes the NodeImage of a node that is gone, or about to be.
func (p *plan) answerNode(node metav1.Object, err error) []*write.Write {
	switch {
	case err == nil && node.GetDeletionTimestamp() == nil:
		p.wait = catchUp
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		p.failed = append(p.failed, fmt.Errorf("read node: %w", err))
		return nil
	}
	return []*write.Write{p.images.Deletion(p.image)}
}

// Err joins what failed.
func (p *plan) Err() error { return errors.Join(p.failed...) }

// Notes returns which tags and secrets are dropped, and why.
func (p *plan) Notes() []note.Note { return p.decision.Notes }

// RequeueAfter returns when to look again.
func (p *plan) RequeueAfter() time.Duration { return requeue.Sooner(p.wait, p.recheckAfter) }
