package pullsecrets

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

type step = driver.Step[*write.Write]

// plan is what is written for a claim.
type plan struct {
	imagepull.ClaimPlan

	// copies are those that the claim was decided upon.
	copies []*corev1.Secret

	// What follows is known once the writes are answered.

	// exists is the answer to a creation whose name is taken, and taken has the secrets of such names, by the sources: an
	// earlier process may have created this very copy.
	exists error
	taken  map[types.NamespacedName]*corev1.Secret
}

// pass returns the writes, one after the other: what is released goes first.
func (p *plan) pass() driver.Pass[*write.Write] {
	var steps []step
	for _, s := range p.Delete {
		steps = append(steps, p.step(&write.Write{Verb: write.Delete, Object: s, SameVersion: true}))
	}
	for _, s := range p.Update {
		at := slices.IndexFunc(p.copies, func(was *corev1.Secret) bool { return was.UID == s.UID })
		steps = append(steps, p.step(stored.Change(p.copies[at], s)))
	}
	for _, s := range p.Create {
		steps = append(steps, p.step(&write.Write{Verb: write.Create, Object: s}))
	}
	return driver.Sequence(steps...)
}

func (p *plan) step(w *write.Write) step {
	return step{Required: true, Plan: func() (driver.Pass[*write.Write], error) {
		return driver.Stage([]*write.Write{w}, p.answer), nil
	}}
}

// answer takes the answer to a write. Where the name of a new copy is taken, the question by what follows, for the next
// pass.
func (p *plan) answer(w *write.Write, answer write.Object, err error) ([]*write.Write, error) {
	doing := "update"
	switch {
	case w.Verb == write.Get:
		if s, is := answer.(*corev1.Secret); is && err == nil {
			p.taken = map[types.NamespacedName]*corev1.Secret{sourceOf(w.Object): s}
		}
		doing, err = "create", p.exists
	case w.Verb == write.Create && apierrors.IsAlreadyExists(err):
		p.exists = err
		return []*write.Write{{Verb: write.Get, Object: w.Object}}, nil
	case w.Verb == write.Create:
		doing = "create"
	case w.Verb == write.Delete && apierrors.IsNotFound(err):
		return nil, nil
	case w.Verb == write.Delete:
		doing = "delete"
	}
	if err != nil {
		return nil, fmt.Errorf("%s copy %s of pull secret: %w", doing, w.Object.GetName(), err)
	}
	return nil, nil
}
