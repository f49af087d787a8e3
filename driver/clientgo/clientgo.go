// Package clientgo sends the writes of plans with client-go.
//
//	pass, err := workload.Plan(input)
//	...
//	err = clientgo.Run(ctx, client.CoreV1().Pods(namespace), pass)
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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Send sends a write of a pod, and returns the pod as the API server answered; nil for a deletion. Errors are those of the
// client: see write.IsOutdated.
func Send(ctx context.Context, pods typed.PodInterface, w *write.Write) (*corev1.Pod, error) {
	pod, is := w.Object.(*corev1.Pod)
	if !is {
		return nil, fmt.Errorf("send write: %T is not a pod", w.Object)
	}
	switch w.Verb {
	case write.Create:
		return pods.Create(ctx, pod, metav1.CreateOptions{})
	case write.Delete:
		return nil, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	case write.Patch:
		data, err := w.Data()
		if err != nil {
			return nil, err
		}
		return pods.Patch(ctx, pod.Name, w.Type, data, metav1.PatchOptions{}, w.Subresources()...)
	}
	return nil, fmt.Errorf("send write: unknown verb %q", w.Verb)
}
