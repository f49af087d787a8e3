package advancedcronjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// act is one pass that writes.
type act struct {
	*Reconciler
	*snapshot
	pass

	// gone are the children that this pass has deleted, and created those that exist now.
	mu      sync.Mutex
	gone    map[types.UID]bool
	created []child
}

// run executes the pass. The status is written also where another write failed. Finished children are deleted after their ticks are
// recorded.
func (a *act) run(ctx context.Context) error {
	a.emitInvalid()
	if a.undecodable != nil {
		return nil //nolint:nilerr // the event reports it
	}
	err := a.make(ctx)
	a.emitWaiting()
	a.known.Note(a.key(), func(k *knowledge) { k.uid, k.last = a.job.UID, a.last })
	if reported := a.report(ctx); reported != nil {
		return errors.Join(err, reported)
	}
	return errors.Join(err, a.delete(ctx, a.trim, reasonDeleted))
}

// delete deletes children, and what belongs to them. One that may not be deleted stops the deletion of no other.
func (a *act) delete(ctx context.Context, all []child, reason string) error {
	kind := a.childKinds[a.kind.name]
	deleted, err := batches.Each(all, func(c child) error {
		name, uid := types.NamespacedName{Namespace: c.GetNamespace(), Name: c.GetName()}, c.GetUID()
		raw := kind.Named(name)
		err := a.api.Client.Delete(ctx, raw, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", c.GetKind(), c.GetName(), err)
		}
		raw.SetUID(uid)
		kind.Writes.Deleted(a.key(), raw)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.gone == nil {
			a.gone = map[types.UID]bool{}
		}
		a.gone[uid] = true
		return nil
	})
	if deleted > 0 {
		a.emitDeleted(reason, deleted)
	}
	return err
}

// make creates the child that is due, after the children that it replaces are deleted.
func (a *act) make(ctx context.Context) error {
	if a.create == nil {
		return nil
	}
	if err := a.delete(ctx, a.replace, reasonReplaced); err != nil {
		return err
	}
	kind, name := a.childKinds[a.kind.name], a.create.GetName()
	err := a.api.Client.Create(ctx, a.create)
	switch {
	case apierrors.IsAlreadyExists(err):
		return a.meet(ctx)
	case err != nil:
		kind.Writes.Doubt(a.key(), a.create, err)
		a.emitFailed(err)
		return fmt.Errorf("create %s %s: %w", kind.GVK.Kind, name, err)
	}
	kind.Writes.Created(a.key(), a.create)
	a.has(a.kind.view(a.create))
	a.emitCreated(name)
	return nil
}

// meet is about a child that exists: the answer to an earlier create was lost, or the name belongs to another object.
func (a *act) meet(ctx context.Context) error {
	kind, there := a.childKinds[a.kind.name], stored.Untyped(a.kind.gvk)
	switch err := a.api.Live.Get(ctx, client.ObjectKeyFromObject(a.create), there); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("create %s %s: the child was deleted meanwhile", kind.GVK.Kind, a.create.GetName())
	case err != nil:
		return fmt.Errorf("read %s %s past the cache: %w", kind.GVK.Kind, a.create.GetName(), err)
	case !owned.Controls(a.job, there):
		err := fmt.Errorf("create %s %s: the name is taken", kind.GVK.Kind, a.create.GetName())
		a.emitFailed(err)
		return err
	case there.GetDeletionTimestamp() == nil:
		kind.Writes.Created(a.key(), there)
	}
	a.has(a.kind.view(there))
	return nil
}

// has records that the child of the tick exists.
func (a *act) has(c child) {
	a.last = a.tick
	a.created = append(a.created, c)
}

// report writes the status, if it changed.
func (a *act) report(ctx context.Context) error {
	children := slices.DeleteFunc(slices.Concat(a.children, a.created), func(c child) bool { return a.gone[c.GetUID()] })
	fresh := *a.job
	fresh.Status = statusOf(a.snapshot, children, a.last)
	if _, err := a.status.Write(ctx, a.job, &fresh, nil); err != nil {
		return err
	}
	a.emitFinished()
	return nil
}
