package nodeimage

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

const (
	// rememberGone is for how long a job is known to be gone. It bounds memory: a UID never comes back.
	rememberGone = 10 * time.Minute
	// rememberThere is for how long something that was asked for is taken to be there still.
	rememberThere = 5 * time.Minute
)

// knowledge is what was found out about single objects, each for a while. It may be lost at any time.
type knowledge struct {
	mu      sync.Mutex
	facts   map[identity]fact
	cleared time.Time
}

// identity of an object. A secret has no UID: the one of its name is meant.
type identity struct {
	kind string
	name types.NamespacedName
	uid  types.UID
}

type fact struct {
	gone  bool
	until time.Time
}

func (k *knowledge) recall(id identity, now time.Time) (f fact, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f = k.facts[id]
	return f, now.Before(f.until)
}

func (k *knowledge) note(id identity, gone bool, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.facts == nil {
		k.facts = map[identity]fact{}
	}
	if now.Sub(k.cleared) > time.Minute {
		k.cleared = now
		maps.DeleteFunc(k.facts, func(_ identity, f fact) bool { return !now.Before(f.until) })
	}
	f := fact{gone, now.Add(rememberThere)}
	if gone {
		f.until = now.Add(rememberGone)
	}
	k.facts[id] = f
}

func jobIdentity(name types.NamespacedName, uid types.UID) identity {
	return identity{jobKind().Kind, name, uid}
}

// jobGone says whether a pull job no longer exists, or is another one of its name. A cache that does not have it may lag
// behind, so that the API server has the last word; once for a job, however many nodes ask.
func (r *Reconciler) jobGone(ctx context.Context, ref corev1.ObjectReference) (bool, error) {
	name := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if !possible(name) {
		return true, nil
	}
	id, now := jobIdentity(name, ref.UID), r.api.Now()
	if f, known := r.known.recall(id, now); known && f.gone {
		return true, nil
	}
	if job, err := stored.Metadata(ctx, r.api.Cached, jobKind(), name); err == nil && job != nil && job.UID == ref.UID {
		return false, nil
	}
	// Not there, another one, or in a namespace that the cache leaves out.
	if _, known := r.known.recall(id, now); known {
		return false, nil
	}
	job, err := stored.Metadata(ctx, r.api.Live, jobKind(), name)
	if unreadable(err) {
		job, err = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: ref.UID}}, nil
	}
	if err != nil {
		return false, err
	}
	gone := job == nil || job.UID != ref.UID
	r.known.note(id, gone, now)
	return gone, nil
}

// secretGone says whether a secret that daemons may read does not exist. Of others nothing is known.
func (r *Reconciler) secretGone(ctx context.Context, ref v1beta1.ReferenceObject) (bool, error) {
	name := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	switch {
	case ref.Namespace != r.options.SecretNamespace:
		return false, nil
	case !possible(name):
		return true, nil
	}
	id, now := identity{"Secret", name, ""}, r.api.Now()
	if _, known := r.known.recall(id, now); known {
		return false, nil
	}
	secret, err := stored.Metadata(ctx, r.api.Live, corev1.SchemeGroupVersion.WithKind("Secret"), name)
	switch {
	case unreadable(err):
	case err != nil:
		return false, err
	case secret == nil:
		return true, nil
	}
	r.known.note(id, false, now)
	return false, nil
}

// nodeGone asks the API server whether a node that the cache does not have is no more, or about to be.
func (r *Reconciler) nodeGone(ctx context.Context, name types.NamespacedName) (bool, error) {
	node, err := stored.Metadata(ctx, r.api.Live, corev1.SchemeGroupVersion.WithKind("Node"), name)
	return err == nil && (node == nil || node.DeletionTimestamp != nil), err
}

// possible says whether an object can have a name: what has none cannot be asked for, and does not exist.
func possible(name types.NamespacedName) bool {
	for _, part := range []string{name.Namespace, name.Name} {
		if part == "" || len(path.IsValidPathSegmentName(part)) > 0 {
			return false
		}
	}
	return true
}

// unreadable says that asking again does not help.
func unreadable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err)
}
