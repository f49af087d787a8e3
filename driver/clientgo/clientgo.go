// Package clientgo sends the writes of plans with client-go.
//
//	pass, err := workload.Plan(input)
//	...
//	err = clientgo.Run(ctx, client.CoreV1().Pods(namespace), pass)
//
// The writes of revisions go through Send:
//
//	newest, w := resolution.Write(metadata)
//	if w != nil {
//		_, err = clientgo.Send(ctx, client.AppsV1().ControllerRevisions(namespace), w)
//	}
//
// Run sends one write after the other, which suits an operator with few pods. One with many sends the writes of a stage at
// the same time, with Send.
//
// An operator that lists its pods from the API server before each pass observes its own writes. One that reads from a cache
// must record what Send returns, or the next pass repeats the writes: see package ledger.
package clientgo

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Run sends the writes of a pass, and returns what failed. A write that was decided upon an older pod is no failure: list the
// pods again, and make another pass.
func Run(ctx context.Context, pods typed.PodInterface, pass *workload.Pass) error {
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		for len(writes) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			w := writes[0]
			pod, err := Send(ctx, pods, &w.Write)
			writes = append(writes[1:], pass.Answer(time.Now(), w, pod, err)...) //nolint:forbidigo // the time of the answer
		}
	}
	return workload.Err(pass.Failures())
}

// Client is the client of one kind in a namespace, as client-go has one for pods, revisions and claims.
type Client[T write.Object] interface {
	// Create creates an object.
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	// Patch changes an object.
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	// Delete deletes an object.
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// Send sends a write of an object, and returns the object as the API server answered; nil for a deletion. Errors are those of
// the client: see write.IsOutdated.
func Send[T write.Object](ctx context.Context, c Client[T], w *write.Write) (answer T, err error) {
	object, is := w.Object.(T)
	if !is {
		return answer, fmt.Errorf("send write: %T is not a %T", w.Object, answer)
	}
	switch w.Verb {
	case write.Create:
		return c.Create(ctx, object, metav1.CreateOptions{})
	case write.Delete:
		return answer, c.Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.GetUID()))})
	case write.Patch:
		data, err := w.Data()
		if err != nil {
			return answer, err
		}
		return c.Patch(ctx, object.GetName(), w.Type, data, metav1.PatchOptions{}, w.Subresources()...)
	}
	return answer, fmt.Errorf("send write: unknown verb %q", w.Verb)
}
