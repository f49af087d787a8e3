package statuspatch

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Contended is the pass of a status that admission writes at the same time. After a conflict it asks for the object as
// it is, and plans again, so that nothing that admission has recorded is lost.
type Contended struct {
	// Kind is that of the object, and Object the object as it was observed.
	Kind   stored.Kind
	Object metav1.Object
	// Attempts is how many writes are tried.
	Attempts int
	// Now is the time of the first plan.
	Now time.Time
	// Plan returns the write of the status; nil for none.
	Plan func(now time.Time) (*write.Write, error)
	// Read takes the object as it is, for the next plan.
	Read func(raw *unstructured.Unstructured) error

	begun, gone bool
	tried       int
	err         error
}

// ErrOutdated is the error of a spec that changed during the pass.
var ErrOutdated = errors.New("the object changed during the pass")

// Stands reports whether the last plan holds: neither has it failed, nor is the object gone.
func (c *Contended) Stands() bool { return c.err == nil && !c.gone }

// Next returns the write of the status.
func (c *Contended) Next() []*write.Write {
	if c.begun {
		return nil
	}
	c.begun = true
	return c.plan(c.Now)
}

func (c *Contended) plan(now time.Time) []*write.Write {
	w, err := c.Plan(now)
	if err != nil || w == nil {
		return c.fail(err)
	}
	c.tried++
	return []*write.Write{w}
}

func (c *Contended) fail(err error) []*write.Write {
	c.err = err
	return nil
}

// Answer takes the answer to the status, or to the question that follows a conflict.
func (c *Contended) Answer(now time.Time, w *write.Write, answer write.Object, err error) []*write.Write {
	switch {
	case w.Verb == write.Get:
		return c.reread(now, answer, err)
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err) && c.tried < c.Attempts:
		name := types.NamespacedName{Namespace: c.Object.GetNamespace(), Name: c.Object.GetName()}
		return []*write.Write{{Verb: write.Get, Object: c.Kind.Named(name)}}
	}
	return c.fail(fmt.Errorf("write status: %w", err))
}

func (c *Contended) reread(now time.Time, answer write.Object, err error) []*write.Write {
	raw, is := answer.(*unstructured.Unstructured)
	switch {
	case apierrors.IsNotFound(err):
		c.gone = true
		return nil
	case err != nil:
		return c.fail(fmt.Errorf("read %s live: %w", c.Kind.GVK.Kind, err))
	case !is || raw.GetUID() != c.Object.GetUID() || raw.GetGeneration() != c.Object.GetGeneration():
		return c.fail(ErrOutdated) // the event of the change may have been seen before
	}
	if err := c.Read(raw); err != nil {
		return c.fail(err)
	}
	return c.plan(now)
}

// Err returns why the status is not written.
func (c *Contended) Err() error { return c.err }

// Notes returns none.
func (*Contended) Notes() []note.Note { return nil }

// RequeueAfter returns 0.
func (*Contended) RequeueAfter() time.Duration { return 0 }
