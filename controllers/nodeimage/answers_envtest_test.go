//go:build envtest

package nodeimage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/nodeimage"
	"github.com/kruisekit/kruisekit/test/requests"
)

// A silent node has failed after ten minutes, or what the options say, and the jobs report it.
func silentNode(b *bench) {
	b.start(nodeimage.Options{ResponseTimeout: time.Hour})
	job := b.job("a")
	node := b.node("1")
	image := b.eventually("1", exists)
	b.looked("1", func() { change(b, image, b.tag("1", job), b.tag("2")) })
	b.clock.advance(59 * time.Minute)
	b.looked("1", func() { b.touch(node) })
	b.Still()
	b.Asked()
	b.clock.advance(time.Minute)
	b.touch(node)
	image = b.eventually("1", func(n *v1beta1.NodeImage) error {
		if n.Status.Failed != 2 || n.Status.Desired != 2 {
			return fmt.Errorf("status %+v", n.Status)
		}
		return nil
	})
	got := image.Status.ImageStatuses["nginx"].Tags[0]
	if got.Tag != "1" || got.Phase != v1beta1.ImagePhaseFailed || got.CompletionTime == nil ||
		got.Message != "node has not responded for a long time" {
		b.Errorf("status %+v", got)
	}
	want := "image nginx:%s is not pulled on node " + b.name("1") + ": node has not responded for a long time"
	b.Until(func() error {
		wanted := []string{
			"ImagePullJob a: " + fmt.Sprintf(want, "1"), "NodeImage 1: " + fmt.Sprintf(want, "1"),
			"NodeImage 1: " + fmt.Sprintf(want, "2"),
		}
		if diff := cmp.Diff(wanted, b.events("PullImageFailed")); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	b.Still()
	if asked := requests.About(b.Asked(), "/status 200"); len(asked) != 1 {
		b.Errorf("the status took %q", asked)
	}
}

// A node that stops being ready wakes the reconciler, which ends a pull without a deadline there after the time for an
// answer.
func notReadyNode(b *bench) {
	b.start(nodeimage.Options{ResponseTimeout: 10 * time.Minute})
	node := b.node("1")
	image := b.eventually("1", exists)
	change(b, image, b.tag("1"))
	b.looked("1", func() {
		changeStatus(b, image, func(n *v1beta1.NodeImage) {
			n.Status.Desired, n.Status.Pulling = 1, 1
			n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{{
				Tag: "1", Phase: v1beta1.ImagePhasePulling,
			}}}}
		})
	})
	b.clock.advance(time.Hour)
	changeStatus(b, node, func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
				c.Status, c.LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(b.clock.now().Add(-10*time.Minute))
			}
		}
	})
	b.eventually("1", func(n *v1beta1.NodeImage) error {
		if t := n.Status.ImageStatuses["nginx"].Tags[0]; n.Status.Failed != 1 ||
			t.Message != "node has not responded for a long time" {
			return fmt.Errorf("status %+v", n.Status)
		}
		return nil
	})
}

// before runs something once before the first write that is of a kind.
func before(do func(), status bool) func(client.WithWatch) client.WithWatch {
	once := sync.OnceFunc(do)
	return func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Patch: func(
				ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
			) error {
				if data, _ := p.Data(o); !status && strings.Contains(string(data), "images") {
					once()
				}
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(
				ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				opts ...client.SubResourcePatchOption,
			) error {
				if status {
					once()
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		})
	}
}

// A daemon that answers in the very moment in which its pull is given up is heard, and no failure is reported.
func answerInTime(b *bench) {
	answered := v1beta1.NodeImageStatus{
		Desired:         1,
		Succeeded:       1,
		FirstSyncStatus: &v1beta1.SyncStatus{Status: v1beta1.SyncStatusSucceeded, SyncAt: metav1.NewTime(time.Unix(1, 0))},
		ImageStatuses: map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{
			{
				Tag:            "1",
				Phase:          v1beta1.ImagePhaseSucceeded,
				Progress:       100,
				CompletionTime: ptr.To(metav1.NewTime(time.Unix(1e9, 0))),
			},
		}}},
	}
	said := make(chan struct{})
	b.startWith(nodeimage.Options{}, before(func() {
		image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: b.name("1")}}
		changeStatus(b, image, func(n *v1beta1.NodeImage) { n.Status = answered })
		close(said)
	}, true))
	node := b.node("1")
	image := b.eventually("1", exists)
	b.looked("1", func() { change(b, image, b.tag("1")) })
	b.clock.advance(time.Hour)
	b.touch(node)
	<-said
	b.looked("1", func() {})
	b.looked("1", func() { b.touch(node) })
	b.Still()
	refresh(b, image)
	if diff := cmp.Diff(answered, image.Status); diff != "" {
		b.Errorf("status (-answered +now):\n%s", diff)
	}
	if told := b.events("PullImageFailed"); len(told) > 0 {
		b.Errorf("told %q", told)
	}
}

// A job that asks in the very moment in which others' tags leave is heard.
func tagInTime(b *bench) {
	asked := make(chan struct{})
	b.startWith(nodeimage.Options{}, before(func() {
		image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: b.name("1")}}
		change(b, image, b.tag("2"))
		close(asked)
	}, false))
	gone := b.job("gone")
	b.node("1")
	image := b.eventually("1", exists)
	b.looked("1", func() { change(b, image, b.tag("1", gone)) })
	b.remove(gone)
	<-asked
	b.eventually("1", lists("nginx:2"))
	b.Still()
	b.eventually("1", lists("nginx:2"))
}
