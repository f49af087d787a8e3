//go:build envtest

package imagepulljob_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/imagepull"
)

// A job that cannot run says why, once, and is left; the jobs beside it never notice, and mended it runs.
func TestInvalid(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(1)
	for name, test := range map[string]struct{ spec, says string }{
		"image": {`"image":"Not An Image","completionPolicy":{}`, "spec.image"},
		"selector": {
			`"image":"nginx:1","completionPolicy":{},"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}`,
			"spec.selector",
		},
		"pods": {
			`"image":"nginx:1","completionPolicy":{},"podSelector":{"matchLabels":{"a":"not a value"}}`, "spec.podSelector",
		},
		"number": {`"image":"nginx:1","completionPolicy":{},"parallelism":3000000000`, "parallelism"},
		"deadline": {
			`"image":"nginx:1","completionPolicy":{"activeDeadlineSeconds":599}`, "spec.completionPolicy.activeDeadlineSeconds",
		},
	} {
		text := fmt.Sprintf(
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"ImagePullJob","metadata":{"namespace":%q,"name":%q},"spec":{%s}}`,
			b.namespace, name, test.spec)
		job := &unstructured.Unstructured{}
		if err := job.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := b.client.Create(t.Context(), job); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b.until(func() error {
			if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
				return err
			}
			if got := fmt.Sprint(job.Object["status"]); !strings.Contains(got, "job cannot run: ") ||
				!strings.Contains(got, test.says) {
				return fmt.Errorf("%s: status %s", name, got)
			}
			return nil
		})
	}
	b.quiet()
	good := b.create("good", "nginx:1")
	b.status(good, "1/0/1/0", "job has completed")
	bad := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "image"}}
	b.change(bad, func(j *v1beta1.ImagePullJob) {
		j.Spec.Image = "busybox"
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{b.node(1)}}
	})
	b.status(bad, "1/0/1/0", "job has completed")
	b.until(func() error {
		var events corev1.EventList
		if err := b.client.List(t.Context(), &events, client.InNamespace(b.namespace)); err != nil {
			return err
		}
		told := map[string]int32{}
		for _, e := range events.Items {
			if e.Reason == "InvalidSpec" {
				told[e.InvolvedObject.Name] += max(e.Count, 1)
			}
		}
		if len(told) != 5 || told["image"] != 1 || told["number"] != 1 {
			return fmt.Errorf("events %v, want one for each of five", told)
		}
		return nil
	})
}

// A node whose list is full, and those whose NodeImages the API server refuses or cannot store, are reported in the
// status; the others go on.
func TestNodesThatCannot(t *testing.T) {
	b := startWith(t, imagepulljob.Options{}, func(c client.WithWatch) client.Client {
		return interceptor.NewClient(c, interceptor.Funcs{
			Patch: func(
				ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
			) error {
				switch name := o.GetName(); {
				case strings.HasSuffix(name, "-003"):
					return apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
				case strings.HasSuffix(name, "-002"):
					return apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("nodeimages").GroupResource(), o.GetName(),
						fmt.Errorf("a webhook says so"))
				}
				return c.Patch(ctx, o, p, opts...)
			},
		})
	})
	b.haveOne(1, func(n *v1beta1.NodeImage) {
		n.Spec.Images = map[string]v1beta1.ImageSpec{}
		for i := range imagepull.MaxImages {
			n.Spec.Images[fmt.Sprintf("other-%d", i)] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{}}
		}
	})
	for i := 2; i < 6; i++ {
		b.haveOne(i)
	}
	b.seen(5)
	job := b.create("web", "nginx:1")
	b.status(job, "5/0/2/0",
		"job is running, progress 40.0%, NodeImages without room for another image: 1, NodeImages that take no change: 2")
}

// The finalizer that the older version's admission adds to every job goes when the job ends.
func TestFinalizerOfOthers(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(1)
	job := b.create("web", "nginx:1", func(j *v1beta1.ImagePullJob) {
		j.Finalizers = []string{"example.com/other", v1beta1.ImagePullJobFinalizerKey}
	})
	b.status(job, "1/0/1/0", "job has completed")
	b.until(func() error {
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if got := fmt.Sprint(job.Finalizers); got != "[example.com/other]" {
			return fmt.Errorf("finalizers %s", got)
		}
		return nil
	})
	b.change(job, func(j *v1beta1.ImagePullJob) { j.Finalizers = nil })
}

// TestNewborn: a job whose nodes come a moment later, as they seem to where one cache is behind another, is not over
// before it began.
func TestNewborn(t *testing.T) {
	var born atomic.Pointer[time.Time]
	var looks atomic.Int64
	b := start(t, imagepulljob.Options{Now: func() time.Time {
		if then := born.Load(); then != nil {
			looks.Add(1)
			return *then // so that it does not grow older
		}
		return time.Now()
	}})
	job := b.create("web", "nginx:1")
	then := job.CreationTimestamp.Time // the object is read again below
	born.Store(&then)
	b.until(func() error {
		if n := looks.Load(); n < 2 {
			return fmt.Errorf("%d looks", n)
		}
		return nil
	})
	b.have(1)
	b.status(job, "1/0/1/0", "job has completed")
}
