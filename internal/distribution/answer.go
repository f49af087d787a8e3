package distribution

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/write"
)

// Action is the request of a step.
type Action string

const (
	// Done is the end of a step: there is no request left.
	Done Action = ""
	// Create creates Resource.Copy.
	Create Action = "Create"
	// Inspect reads the object live.
	Inspect Action = "Inspect"
	// Update sends Resource.Patch.
	Update Action = "Update"
	// Delete deletes the object of the UID and the version of the step.
	Delete Action = "Delete"
)

// maxRequests bounds the requests in one namespace in one pass.
const maxRequests = 8

// Step is the next request in one namespace.
type Step struct {
	Namespace string
	Action    Action
	// UID and Version are what an update and a deletion test.
	UID     types.UID
	Version string
	// Failure is why the step ended without a copy, or why a copy was not removed; nil for a success.
	Failure *Failure

	// target is a namespace that should have a copy.
	target bool
	// recreate means that a creation follows the deletion.
	recreate bool
	// inspected means that the live object was compared in this pass.
	inspected bool
	// repair means that the copy was as it should be before another writer changed it.
	repair bool
	// keys is the value of KeysAnnotation on the copy.
	keys   string
	filled Filled
	left   int
	known  Known
}

// Ended reports whether nothing is left to do.
func (s Step) Ended() bool { return s.Action == Done }

// Answer returns the step that follows from the answer to a request. live is what the API server returned; nil for a
// deletion and for an error.
func (p *Pass) Answer(s Step, live Object, err error) Step {
	if s.left--; s.left <= 0 && err == nil && s.Action == Inspect {
		return s.fail(v1beta1.ResourceDistributionUpdateResourceFailed, errors.New(textRestless))
	}
	if err != nil && gone(err) {
		if !s.target {
			return s.end()
		}
		return s.fail(v1beta1.ResourceDistributionNamespaceNotExists, errors.New(textTerminating))
	}
	switch s.Action {
	case Create:
		return p.created(s, live, err)
	case Inspect:
		return p.inspected(s, live, err)
	case Update:
		return p.updated(s, live, err)
	case Delete:
		return s.deleted(err)
	case Done:
	}
	return s
}

// gone reports whether the namespace of an object is terminating.
func gone(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }

func (p *Pass) created(s Step, live Object, err error) Step {
	switch {
	case err == nil:
		return p.settle(s, live, true)
	case apierrors.IsAlreadyExists(err) && s.left > 0:
		return s.next(Inspect)
	case apierrors.IsNotFound(err):
		return s.fail(v1beta1.ResourceDistributionNamespaceNotExists, errors.New(textMissing))
	}
	return s.fail(v1beta1.ResourceDistributionCreateResourceFailed, err)
}

func (p *Pass) inspected(s Step, live Object, err error) Step {
	switch {
	case apierrors.IsNotFound(err) && s.target && s.left > 0:
		return s.next(Create)
	case apierrors.IsNotFound(err) && !s.target:
		return s.end()
	case err != nil:
		return s.fail(v1beta1.ResourceDistributionGetResourceFailed, err)
	}
	s.UID, s.Version, s.keys, s.inspected = live.GetUID(), live.GetResourceVersion(),
		live.GetAnnotations()[KeysAnnotation], true
	s.filled = filled(live)
	controlled, deleting := p.in.Owner.Controls(live), live.GetDeletionTimestamp() != nil
	switch {
	case !s.target && (!controlled || deleting):
		return s.end()
	case !s.target:
		return s.next(Delete)
	case !controlled:
		return s.fail(v1beta1.ResourceDistributionConflictOccurred, errors.New(textConflict))
	case deleting:
		return s.fail(v1beta1.ResourceDistributionUpdateResourceFailed, errors.New(textDeleting))
	}
	return p.compared(s, live)
}

// compared decides about an own copy that was read.
func (p *Pass) compared(s Step, live Object) Step {
	d := p.in.Resource.compare(live, p.in.Owner)
	switch {
	case !d.any():
		return p.settle(s, live, false)
	case d.secretType || d.content && contentOf(live).Immutable:
		s.recreate = true
		return s.next(Delete)
	}
	return s.next(Update)
}

func (p *Pass) updated(s Step, live Object, err error) Step {
	switch {
	case err == nil:
		return p.settle(s, live, true)
	case s.left > 0 && (write.IsOutdated(err) || apierrors.IsInvalid(err) && !s.inspected):
		return s.next(Inspect) // it changed, or it may be immutable
	}
	return s.fail(v1beta1.ResourceDistributionUpdateResourceFailed, err)
}

func (s Step) deleted(err error) Step {
	if apierrors.IsNotFound(err) {
		err = nil
	}
	switch {
	case err == nil && s.recreate && s.left > 0:
		return s.next(Create)
	case err == nil:
		return s.end()
	case write.IsOutdated(err) && s.left > 0:
		return s.next(Inspect)
	case s.target:
		return s.fail(v1beta1.ResourceDistributionUpdateResourceFailed, err)
	}
	return s.fail(v1beta1.ResourceDistributionDeleteResourceFailed, err)
}

// settle ends a step whose copy is as it should be.
func (p *Pass) settle(s Step, live Object, wrote bool) Step {
	if wrote && s.repair {
		s.known.repairs++
	}
	s.known.UID, s.known.Version, s.known.Digest = live.GetUID(), live.GetResourceVersion(), p.in.Resource.Digest
	s.known.Keys, s.known.Filled = live.GetAnnotations()[KeysAnnotation], filled(live)
	return s.end()
}

func (s Step) next(a Action) Step {
	s.Action = a
	return s
}

func (s Step) end() Step { return s.next(Done) }

func (s Step) fail(t v1beta1.ResourceDistributionConditionType, err error) Step {
	s.Failure = &Failure{Namespace: s.Namespace, Type: t, Text: err.Error(), Err: err}
	return s.end()
}

func filled(o Object) Filled {
	c := contentOf(o)
	return Filled{Data: len(c.Data) > 0, Binary: len(c.Binary) > 0}
}
