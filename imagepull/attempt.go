package imagepull

import (
	"cmp"
	"maps"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

const (
	firstDelay = time.Second
	longDelay  = 30 * time.Second
	// pulledByKey is the annotation that names the puller to the container runtime.
	pulledByKey   = "apps.kruise.io/pulling-image-by"
	pulledByValue = "kruise-daemon"
)

// Pull is one tag on its way to a node. It is a value: each method returns the next one.
type Pull struct {
	// Reference to pull.
	Reference Reference
	// Tag is what is asked for.
	Tag v1beta1.ImageTagSpec
	// Secrets to log in with. The caller reads them for each attempt.
	Secrets []v1beta1.ReferenceObject
	// Sandbox goes to the runtime with each attempt. Its maps are copies, not shared with the NodeImage.
	Sandbox v1beta1.SandboxConfig
	// Status of the tag, as the NodeImage has it.
	Status v1beta1.ImageTagStatus
	// Attempts that failed.
	Attempts int64
	// NotBefore is when the next attempt may be made.
	NotBefore time.Time
}

// Do says what to do about a pull.
type Do string

const (
	// DoTry makes an attempt, and reports it with Succeed or Fail.
	DoTry Do = "Try"
	// DoWait waits.
	DoWait Do = "Wait"
	// DoStop does nothing any more.
	DoStop Do = "Stop"
)

// Turn is what to do next about a pull.
type Turn struct {
	Do Do
	// Timeout of the attempt.
	Timeout time.Duration
	// IfAbsent says that an image which the node has is good enough.
	IfAbsent bool
	// Wait is for how long to wait.
	Wait time.Duration
}

// newPull waits for its turn.
func newPull(name string, image v1beta1.ImageSpec, t v1beta1.ImageTagSpec) Pull {
	p := Pull{Status: v1beta1.ImageTagStatus{Tag: t.Tag, Version: t.Version, Phase: v1beta1.ImagePhaseWaiting}}
	return p.asked(name, image, t)
}

// asked is the pull with what is asked for now.
func (p Pull) asked(name string, image v1beta1.ImageSpec, t v1beta1.ImageTagSpec) Pull {
	image = *image.DeepCopy()
	p.Reference, p.Tag, p.Secrets = Reference{Name: name, Tag: t.Tag}, *t.DeepCopy(), image.PullSecrets
	p.Sandbox = ptr.Deref(image.SandboxConfig, v1beta1.SandboxConfig{})
	p.Sandbox.Annotations = maps.Clone(p.Sandbox.Annotations)
	if p.Sandbox.Annotations == nil {
		p.Sandbox.Annotations = map[string]string{}
	}
	p.Sandbox.Annotations[pulledByKey] = pulledByValue
	return p
}

// Ended says whether the pull has succeeded or failed for good.
func (p Pull) Ended() bool { return p.Status.CompletionTime != nil }

// MaxAttempts is how many attempts the pull makes before it fails for good.
func (p Pull) MaxAttempts() int64 { return p.limit() + 1 }

// Next begins the pull where it has not begun, and says what to do. A pull past its deadline fails here.
func (p Pull) Next(now time.Time) (Pull, Turn) {
	if p.Ended() {
		return p, Turn{Do: DoStop}
	}
	if p.Status.StartTime == nil {
		p.Status.StartTime, p.Status.Phase = ptr.To(metav1.NewTime(now)), v1beta1.ImagePhasePulling
	}
	left := p.left(now)
	if left <= 0 {
		return p.end(v1beta1.ImagePhaseFailed, overdueText, now), Turn{Do: DoStop}
	}
	if wait := p.NotBefore.Sub(now); wait > 0 {
		return p, Turn{Do: DoWait, Wait: min(wait, left)}
	}
	return p, Turn{Do: DoTry, Timeout: min(p.timeout(), left), IfAbsent: p.Tag.ImagePullPolicy == v1beta1.PullIfNotPresent}
}

// Succeed is the pull after an attempt that brought the image, or found it. The id is the one that the runtime gave it,
// empty where that is unknown.
func (p Pull) Succeed(imageID string, now time.Time) Pull {
	if p.Ended() {
		return p
	}
	p = p.end(v1beta1.ImagePhaseSucceeded, "", now)
	p.Status.Progress = 100
	if imageID != "" {
		p.Status.ImageID = p.Reference.Name + "@" + imageID
	}
	return p
}

// Fail is the pull after an attempt that failed. It is tried again after 1, 2, 4 ... at most 30 seconds, as often as
// the tag's limit says.
func (p Pull) Fail(message string, now time.Time) Pull {
	if p.Ended() {
		return p
	}
	p.Attempts++
	switch {
	case p.left(now) <= 0:
		return p.end(v1beta1.ImagePhaseFailed, overdueText, now)
	case p.Attempts > p.limit():
		return p.end(v1beta1.ImagePhaseFailed, cmp.Or(message, "pull failed"), now)
	}
	delay := longDelay
	if p.Attempts <= 5 {
		delay = firstDelay << (p.Attempts - 1)
	}
	p.NotBefore = now.Add(delay)
	return p
}

func (p Pull) end(phase v1beta1.ImagePullPhase, message string, now time.Time) Pull {
	if p.Status.StartTime == nil {
		p.Status.StartTime = ptr.To(metav1.NewTime(now))
	}
	p.Status.Phase, p.Status.Message, p.Status.CompletionTime = phase, message, ptr.To(metav1.NewTime(now))
	return p
}

func (p Pull) policy() v1beta1.ImageTagPullPolicy {
	return ptr.Deref(p.Tag.PullPolicy, v1beta1.ImageTagPullPolicy{})
}

// left is how long the pull may still take.
func (p Pull) left(now time.Time) time.Duration {
	limit := p.policy().ActiveDeadlineSeconds
	if limit == nil || p.Status.StartTime == nil {
		return math.MaxInt64
	}
	return remaining(p.Status.StartTime.Time, *limit, now)
}

// timeout of one attempt. One that is no time at all would fail every pull, and is taken as not given.
func (p Pull) timeout() time.Duration {
	n := ptr.Deref(p.policy().TimeoutSeconds, v1beta1.DefaultImagePullTimeoutSeconds)
	if n <= 0 {
		n = v1beta1.DefaultImagePullTimeoutSeconds
	}
	return seconds(int64(n))
}

func (p Pull) limit() int64 {
	n := ptr.Deref(p.policy().BackoffLimit, v1beta1.DefaultImagePullBackoffLimit)
	if n < 0 {
		n = v1beta1.DefaultImagePullBackoffLimit
	}
	return int64(n)
}
