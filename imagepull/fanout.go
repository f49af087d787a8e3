package imagepull

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// ErrFull is the error of a NodeImage that lists as many images as it may, or is as long as it may be: a job waits
// until one leaves.
var ErrFull = errors.New("the NodeImage lists as much as it may")

const (
	// defaultKeepSeconds is for how long a tag outlives its pull and its job's interest, unless the caller knows better.
	defaultKeepSeconds = 300
	// neverSeconds is how long a tag of a job without end stays. After that, the node pulls the tag again.
	neverSeconds = 86400
	// certain is how long a node is known to have what it has pulled. Then the kubelet may have collected it.
	certain = 5 * time.Minute
	// neverDeadlineSeconds is how long such a pull may take at least.
	neverDeadlineSeconds = 1800
)

// Request is what one job asks of nodes. The zero values of all fields but Job and Now are good defaults.
type Request struct {
	// Job that asks.
	Job *v1beta1.ImagePullJob
	// Secrets that the nodes read, in the order in which they try them.
	Secrets []v1beta1.ReferenceObject
	// Refused has the reasons of the API server for not changing NodeImages, by the node. Review asks others instead.
	Refused map[string]error
	// Now is the time.
	Now time.Time
	// Random is any number. With another one for each node, the tags of a job do not all leave at once.
	Random uint32
	// KeepSeconds is added to what a job says about how long its tags stay. Nil is 300.
	KeepSeconds *int32
}

// For is the request to one node: each has another random number, so that the tags of a job do not all leave at once.
func (r Request) For(node string) Request {
	h := fnv.New32a()
	fmt.Fprint(h, r.Job.UID, node)
	r.Random = h.Sum32()
	return r
}

// Apply returns a copy of the NodeImage that lists the job's image, owned by the job. It returns nil where the
// NodeImage lists the job and its secrets already, or lists the job and has no room for its secrets.
//
// When other jobs own the tag, Apply adds the job's owner reference and secrets to theirs, and keeps the larger of each
// limit. Apply raises the version of such a tag, so that the node pulls it again, in these cases only:
//   - The pull has failed.
//   - The pull has succeeded, and this job's pull policy is not IfNotPresent.
//   - The pull has succeeded five minutes ago or earlier, or at an unknown time. The node pulls only if the image is
//     gone.
//   - The pull has not ended and has the policy IfNotPresent, and this job has another policy.
//
// A job that Apply adds replaces the sandboxConfig of the image with its own. A job without a sandboxConfig leaves it
// unchanged.
func (r Request) Apply(node *v1beta1.NodeImage) (*v1beta1.NodeImage, error) {
	ref, err := r.reference()
	if err != nil {
		return nil, err
	}
	image := node.Spec.Images[ref.Name]
	at := tagAt(image.Tags, ref.Tag)
	owned := at >= 0 && owns(image.Tags[at].OwnerReferences, r.Job)
	missing := lacking(image.PullSecrets, r.Secrets)
	fits := hasRoom(node, ref)
	if owned && (len(missing) == 0 || !fits) {
		return nil, nil
	}
	if !fits {
		return nil, fmt.Errorf("%s: image %s: %w", node.Name, ref.Name, ErrFull)
	}
	changed := node.DeepCopy()
	image = *image.DeepCopy()
	image.PullSecrets = append(image.PullSecrets, missing...)
	status := statusOf(node, ref)
	switch {
	case owned:
	case at >= 0:
		r.join(&image.Tags[at], status)
	default:
		image.Tags = append(image.Tags, r.tag(ref.Tag, next(-1, status)))
	}
	if !owned && r.Job.Spec.SandboxConfig != nil {
		image.SandboxConfig = r.Job.Spec.SandboxConfig.DeepCopy()
	}
	slices.SortStableFunc(image.Tags, func(a, b v1beta1.ImageTagSpec) int { return strings.Compare(a.Tag, b.Tag) })
	if changed.Spec.Images == nil {
		changed.Spec.Images = map[string]v1beta1.ImageSpec{}
	}
	changed.Spec.Images[ref.Name] = image
	return changed, nil
}

func (r Request) reference() (Reference, error) {
	if r.Job.UID == "" {
		return Reference{}, errors.New("metadata.uid: a job without one cannot own what it asks for")
	}
	ref, err := Parse(r.Job.Spec.Image)
	if err != nil {
		return Reference{}, fmt.Errorf("spec.image: %w", err)
	}
	return ref, nil
}

// tag returns the tag of a job, for an image that does not list the tag yet.
func (r Request) tag(tag string, version int64) v1beta1.ImageTagSpec {
	return v1beta1.ImageTagSpec{
		Tag: tag, Version: version, CreatedAt: ptr.To(metav1.NewTime(r.Now)), PullPolicy: r.policy(),
		OwnerReferences: []corev1.ObjectReference{r.owner()}, ImagePullPolicy: r.Job.Spec.ImagePullPolicy,
	}
}

// join makes the job an owner of a tag that is there. The tag then stays for at least as long as one of the job's own.
func (r Request) join(t *v1beta1.ImageTagSpec, status *v1beta1.ImageTagStatus) {
	own := r.policy()
	t.OwnerReferences = append(t.OwnerReferences, r.owner())
	fresh := status != nil && status.Version == t.Version
	phase := v1beta1.ImagePhaseWaiting
	if fresh {
		phase = status.Phase
	}
	content := r.Job.Spec.ImagePullPolicy == v1beta1.PullIfNotPresent
	var again bool
	switch phase {
	case v1beta1.ImagePhaseSucceeded:
		again = !content || status.CompletionTime == nil || r.Now.Sub(status.CompletionTime.Time) >= certain
	case v1beta1.ImagePhaseFailed:
		again = true
	default:
		again = !content && t.ImagePullPolicy == v1beta1.PullIfNotPresent
	}
	if again {
		t.Version = next(t.Version, status)
		t.CreatedAt = ptr.To(metav1.NewTime(r.Now))
		t.ImagePullPolicy = r.Job.Spec.ImagePullPolicy
	} else if fresh && status.CompletionTime != nil {
		elapsed := int64(max(0, r.Now.Sub(status.CompletionTime.Time)) / time.Second)
		own.TTLSecondsAfterFinished = ptr.To(int32Of(elapsed + int64(*own.TTLSecondsAfterFinished)))
	}
	t.PullPolicy = larger(t.PullPolicy, own)
}

func (r Request) owner() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: v1beta1.GroupVersion.String(), Kind: "ImagePullJob",
		Namespace: r.Job.Namespace, Name: r.Job.Name, UID: r.Job.UID,
	}
}

// policy is how a tag of the job's own is pulled, and how long it stays.
func (r Request) policy() *v1beta1.ImageTagPullPolicy {
	pull := ptr.Deref(r.Job.Spec.PullPolicy, v1beta1.PullPolicy{})
	p := &v1beta1.ImageTagPullPolicy{TimeoutSeconds: copied(pull.TimeoutSeconds), BackoffLimit: copied(pull.BackoffLimit)}
	timeout := int64(ptr.Deref(pull.TimeoutSeconds, v1beta1.DefaultImagePullTimeoutSeconds))
	completion := r.Job.Spec.CompletionPolicy
	if completion.Type == v1beta1.Never {
		p.TTLSecondsAfterFinished = ptr.To(neverSeconds - 600 + int32(r.Random%1200))
		p.ActiveDeadlineSeconds = ptr.To(max(neverDeadlineSeconds, timeout))
		return p
	}
	keep := timeout * int64(ptr.Deref(pull.BackoffLimit, v1beta1.DefaultImagePullBackoffLimit))
	switch {
	case completion.TTLSecondsAfterFinished != nil:
		keep = int64(*completion.TTLSecondsAfterFinished)
	case completion.ActiveDeadlineSeconds != nil:
		keep = *completion.ActiveDeadlineSeconds
	}
	keep = min(max(keep, 0), math.MaxInt32) + int64(max(ptr.Deref(r.KeepSeconds, defaultKeepSeconds), 0)) +
		int64(r.Random%300)
	p.TTLSecondsAfterFinished = ptr.To(int32Of(keep))
	p.ActiveDeadlineSeconds = copied(completion.ActiveDeadlineSeconds)
	return p
}

// larger takes the larger of each limit. What is missing is a default, or in the case of TTL and deadline no limit at
// all.
func larger(a, b *v1beta1.ImageTagPullPolicy) *v1beta1.ImageTagPullPolicy {
	if a == nil {
		a = &v1beta1.ImageTagPullPolicy{} // the defaults, which stay for ever
	}
	return &v1beta1.ImageTagPullPolicy{
		TimeoutSeconds:          largerOf(a.TimeoutSeconds, b.TimeoutSeconds, v1beta1.DefaultImagePullTimeoutSeconds),
		BackoffLimit:            largerOf(a.BackoffLimit, b.BackoffLimit, v1beta1.DefaultImagePullBackoffLimit),
		TTLSecondsAfterFinished: largerOf(a.TTLSecondsAfterFinished, b.TTLSecondsAfterFinished, math.MaxInt32),
		ActiveDeadlineSeconds:   largerOf(a.ActiveDeadlineSeconds, b.ActiveDeadlineSeconds, math.MaxInt64),
	}
}

func largerOf[T int32 | int64](a, b *T, unset T) *T {
	if ptr.Deref(b, unset) > ptr.Deref(a, unset) {
		a = b
	}
	return copied(a)
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return ptr.To(*p)
}

// next returns a version that neither the spec nor the status of a tag has had. After the largest version, next
// returns 0.
func next(version int64, status *v1beta1.ImageTagStatus) int64 {
	if status != nil {
		version = max(version, status.Version)
	}
	if version == math.MaxInt64 {
		return 0
	}
	return max(version, -1) + 1
}

func int32Of(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

func tagAt(tags []v1beta1.ImageTagSpec, tag string) int {
	return slices.IndexFunc(tags, func(t v1beta1.ImageTagSpec) bool { return t.Tag == tag })
}

func statusAt(tags []v1beta1.ImageTagStatus, tag string) int {
	return slices.IndexFunc(tags, func(t v1beta1.ImageTagStatus) bool { return t.Tag == tag })
}

func statusOf(node *v1beta1.NodeImage, ref Reference) *v1beta1.ImageTagStatus {
	tags := node.Status.ImageStatuses[ref.Name].Tags
	if at := statusAt(tags, ref.Tag); at >= 0 {
		return &tags[at]
	}
	return nil
}

func owns(owners []corev1.ObjectReference, job *v1beta1.ImagePullJob) bool {
	return slices.ContainsFunc(owners, func(o corev1.ObjectReference) bool { return o.UID == job.UID })
}

// lacking are the wanted secrets that are not there. How a NodeImage came to a secret is no matter.
func lacking(have, want []v1beta1.ReferenceObject) []v1beta1.ReferenceObject {
	var missing []v1beta1.ReferenceObject
	for _, w := range want {
		same := func(h v1beta1.ReferenceObject) bool { return h.Namespace == w.Namespace && h.Name == w.Name }
		if !slices.ContainsFunc(have, same) && !slices.ContainsFunc(missing, same) {
			missing = append(missing, w)
		}
	}
	return missing
}
