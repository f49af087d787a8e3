package imagepull

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
)

const (
	defaultReadyFor = 30 * time.Second
	defaultAnswer   = 10 * time.Minute
	soon            = 3 * time.Second
)

// Upkeep is what is known about one node and its NodeImage. The zero values of all fields but Now are good defaults.
type Upkeep struct {
	// Node, or nil where there is none.
	Node *corev1.Node
	// Image is the NodeImage of the same name, or nil where there is none.
	Image *v1beta1.NodeImage
	// OwnerGone says that a pull job no longer exists, or is another one of its name. Only what is known for sure: where
	// reading failed it is false. It is asked about pull jobs alone. Nil is never.
	OwnerGone func(corev1.ObjectReference) bool
	// SecretGone says that a pull secret does not exist, in the same way.
	SecretGone func(v1beta1.ReferenceObject) bool
	// Now is the time.
	Now time.Time
	// ReadyFor is how long a node has been ready before it gets a NodeImage. Zero is 30 seconds.
	ReadyFor time.Duration
	// Answer is how long a node may be silent about a pull. Zero is 10 minutes.
	Answer time.Duration
	// Random is any number. With another one for each node, not all of them are read at the same moment.
	Random uint32
}

// Failure is a pull that Maintain ends, because its node did not report a result in time.
type Failure struct {
	Reference Reference
	Owners    []corev1.ObjectReference
	Message   string
}

// UpkeepPlan is what to do about a NodeImage. At most one of Create, Delete, Update and Status is set.
type UpkeepPlan struct {
	// Create is a NodeImage for a node that has none.
	Create *v1beta1.NodeImage
	// Delete says that its node is gone.
	Delete bool
	// Update is the NodeImage with the labels of its node, and without what is no longer wanted.
	Update *v1beta1.NodeImage
	// Status is the status to write when the plan ends pulls whose results the node does not report.
	Status *v1beta1.NodeImageStatus
	// Failures are those pulls, by image and tag.
	Failures []Failure
	// RequeueAfter is when to look again, if not before. Zero is when something changes.
	RequeueAfter time.Duration
	// Notes report which tags and secrets the plan drops, and why.
	Notes []note.Note
}

// Maintain plans the creation, the update and the deletion of a NodeImage. It copies the labels of the node. It drops
// owners and secrets that are gone, and images without tags. References to copies of secrets stay as long as the image,
// but for those to deleted copies beyond a number.
// It also drops tags without createdAt, tags whose last owner is gone, and tags whose TTL has passed. When the
// NodeImage needs no update, Maintain ends the pulls whose results the node has not reported in time.
func Maintain(u Upkeep) UpkeepPlan {
	k := keeper{Upkeep: u}
	k.ReadyFor, k.Answer = cmp.Or(k.ReadyFor, defaultReadyFor), cmp.Or(k.Answer, defaultAnswer)
	gone := !k.alive()
	switch {
	case u.Image == nil && gone:
	case u.Image == nil:
		k.create()
	case gone && !fake(u.Image):
		k.plan.Delete = u.Image.DeletionTimestamp == nil
	case u.Image.DeletionTimestamp != nil:
	default:
		k.maintain()
	}
	if k.plan.RequeueAfter > 0 && k.plan.RequeueAfter < soon {
		k.plan.RequeueAfter = soon + time.Duration(u.Random%2000)*time.Millisecond
	}
	return k.plan
}

func (u Upkeep) alive() bool { return u.Node != nil && u.Node.DeletionTimestamp == nil }

func fake(n *v1beta1.NodeImage) bool {
	_, ok := n.Labels[v1beta1.NodeImageFakeKey]
	return ok
}

// keeper makes the plan.
type keeper struct {
	Upkeep
	plan UpkeepPlan
}

func (k *keeper) note(code, object, text string) {
	k.plan.Notes = append(k.plan.Notes, newNote(code, object, text))
}

// wait looks again when the earliest wait ends.
func (k *keeper) wait(d time.Duration) {
	if k.plan.RequeueAfter == 0 || d < k.plan.RequeueAfter {
		k.plan.RequeueAfter = max(d, 1)
	}
}

func (k *keeper) create() {
	if k.Node.Labels[kruise.NodeTypeKey] == kruise.NodeTypeVirtualKubelet {
		return
	}
	for _, c := range k.Node.Status.Conditions {
		if c.Type != corev1.NodeReady || c.Status != corev1.ConditionTrue {
			continue
		}
		if left := c.LastTransitionTime.Add(k.ReadyFor).Sub(k.Now); left > 0 {
			k.wait(left)
			break
		}
		k.plan.Create = &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
			Name: k.Node.Name, Labels: maps.Clone(k.Node.Labels),
		}}
		return
	}
	k.note(NoteNotReady, k.Node.Name, "gets its NodeImage once it has been ready for "+k.ReadyFor.String())
}

func (k *keeper) maintain() {
	n := k.Image.DeepCopy()
	changed := k.alive() && !maps.Equal(n.Labels, k.Node.Labels)
	if changed {
		n.Labels = maps.Clone(k.Node.Labels)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Spec.Images)) {
		image := n.Spec.Images[name]
		if !k.prune(name, &image) {
			continue
		}
		changed = true
		n.Spec.Images[name] = image
		if len(image.Tags) == 0 {
			delete(n.Spec.Images, name)
		}
	}
	if changed {
		k.plan.Update, k.plan.RequeueAfter = n, 0
		return
	}
	k.answer()
}

// prune drops from an image what is no longer wanted, and says whether there was anything.
func (k *keeper) prune(name string, image *v1beta1.ImageSpec) bool {
	changed := len(image.Tags) == 0
	tags := image.Tags[:0]
	for _, t := range image.Tags {
		ref := Reference{Name: name, Tag: t.Tag}
		owners := slices.DeleteFunc(slices.Clone(t.OwnerReferences), k.ownerGone)
		lost := len(owners) < len(t.OwnerReferences)
		changed = changed || lost
		t.OwnerReferences = owners
		why := ""
		switch {
		case t.CreatedAt == nil:
			why = "it has no createdAt"
		case lost && len(owners) == 0:
			why = "those who asked for it are gone"
		case k.expired(ref, t):
			why = "it ended long enough ago"
		}
		if why == "" {
			tags = append(tags, t)
			continue
		}
		changed = true
		k.note(NoteDropped, ref.String(), why)
	}
	image.Tags = tags
	secrets := slices.DeleteFunc(slices.Clone(image.PullSecrets), k.secretGone)
	if len(tags) > 0 {
		secrets = k.trim(secrets)
	}
	if len(secrets) < len(image.PullSecrets) {
		changed = true
		if len(tags) > 0 {
			k.note(NoteDropped, name, fmt.Sprintf("%d of its pull secrets are gone", len(image.PullSecrets)-len(secrets)))
		}
		image.PullSecrets = secrets
	}
	return changed
}

func (k *keeper) ownerGone(o corev1.ObjectReference) bool {
	return k.OwnerGone != nil && isJob(o) && k.OwnerGone(o)
}

func ofOurGroup(apiVersion string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && gv.Group == v1beta1.GroupVersion.Group
}

func (k *keeper) secretGone(s v1beta1.ReferenceObject) bool {
	return k.SecretGone != nil && s.Mode != v1beta1.ReferenceObjectModeBatch && k.SecretGone(s)
}

// trim drops references to deleted copies from a list that is too long, the oldest first. A copy exists as long as a
// running job needs the copy.
func (k *keeper) trim(secrets []v1beta1.ReferenceObject) []v1beta1.ReferenceObject {
	excess := len(secrets) - maxBatchSecrets
	return slices.DeleteFunc(secrets, func(s v1beta1.ReferenceObject) bool {
		drop := excess > 0 && s.Mode == v1beta1.ReferenceObjectModeBatch && k.SecretGone != nil && k.SecretGone(s)
		if drop {
			excess--
		}
		return drop
	})
}

func (k *keeper) expired(ref Reference, t v1beta1.ImageTagSpec) bool {
	status := statusOf(k.Image, ref)
	if status == nil || status.Version != t.Version || t.PullPolicy == nil {
		return false
	}
	left, limited := expires(status.CompletionTime, t.PullPolicy.TTLSecondsAfterFinished, k.Now)
	if limited && left > 0 {
		k.wait(left)
	}
	return limited && left <= 0
}
