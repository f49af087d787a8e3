package write_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgofake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // its answers are what is tested

	"github.com/kruisekit/kruisekit/write"
)

// A patch that fails in a fake client is in the same class as one that an API server rejects, for both of the common
// clients.
func TestFakeClients(t *testing.T) {
	pod := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
	}
	type sender func(context.Context, *write.Write) error
	clients := map[string]func() sender{
		"controller-runtime": func() sender {
			c := fake.NewClientBuilder().WithObjects(pod()).WithStatusSubresource(&corev1.Pod{}).Build()
			return func(ctx context.Context, w *write.Write) error {
				data, err := w.Data()
				if err != nil {
					return err
				}
				if w.Subresource == write.Status {
					return c.Status().Patch(ctx, pod(), client.RawPatch(w.Type, data))
				}
				return c.Patch(ctx, pod(), client.RawPatch(w.Type, data))
			}
		},
		"client-go": func() sender {
			pods := clientgofake.NewClientset(pod()).CoreV1().Pods("shop")
			return func(ctx context.Context, w *write.Write) error {
				data, err := w.Data()
				if err != nil {
					return err
				}
				_, err = pods.Patch(ctx, "web", w.Type, data, metav1.PatchOptions{}, w.Subresources()...)
				return err
			}
		},
	}
	for name, c := range map[string]struct {
		subresource string
		op          write.Op
		outdated    bool
		fails       bool
	}{
		"a test that holds": {op: write.Test("/metadata/uid", "1")},
		"a test that fails": {op: write.Test("/metadata/uid", "2"), outdated: true, fails: true},
		"a test of the status": {
			op: write.Test("/metadata/uid", "2"), subresource: write.Status, outdated: true, fails: true,
		},
		"a test below what is absent": {op: write.Test("/metadata/labels/a", "b"), outdated: true, fails: true},
		"a removal of what is absent": {op: write.Remove("/metadata/labels"), outdated: true, fails: true},
		"a patch that is none":        {op: write.Op{Op: "rename", Path: "/metadata/uid"}, fails: true},
	} {
		for client, newSender := range clients {
			t.Run(name+" with "+client, func(t *testing.T) {
				err := newSender()(t.Context(), write.JSON(pod(), c.subresource, c.op))
				if (err != nil) != c.fails || write.IsOutdated(err) != c.outdated || write.IsRefused(err) != c.outdated {
					t.Errorf("outdated %t, refused %t: %v", write.IsOutdated(err), write.IsRefused(err), err)
				}
				if c.outdated && !errors.Is(err, evanphx.ErrTestFailed) && !errors.Is(err, evanphx.ErrMissing) {
					t.Errorf("another error: %v", err)
				}
				if joined := fmt.Errorf("patch: %w", errors.Join(errors.New("other"), err)); c.fails &&
					write.IsOutdated(joined) != c.outdated {
					t.Errorf("joined: %v", joined)
				}
			})
		}
	}
	if write.IsOutdated(errors.New("the container test failed")) || write.IsRefused(errors.New("missing value x")) {
		t.Error("a text that contains the words is taken for a failed patch")
	}
}
