//go:build envtest

package imagelistpulljob_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagelistpulljob"
	"github.com/kruisekit/kruisekit/test/requests"
)

func plain(c client.WithWatch) client.WithWatch { return c }

// A list that admission would reject makes no job, with one event. Once it is valid, it is a list like others.
func TestInvalidLists(t *testing.T) {
	b := start(t)
	for name, c := range map[string]struct {
		change func(*v1beta1.ImageListPullJob)
		told   string
	}{
		"no-images": {func(l *v1beta1.ImageListPullJob) { l.Spec.Images = []string{} }, "spec.images: Required value"},
		"deadline": {
			func(l *v1beta1.ImageListPullJob) { l.Spec.CompletionPolicy.ActiveDeadlineSeconds = ptr.To[int64](599) },
			"must not be less than pullPolicy.timeoutSeconds",
		},
	} {
		list := b.create(name, []string{"nginx:1"}, c.change)
		b.Until(func() error {
			if told := b.events(list, "InvalidSpec"); len(told) != 1 || !strings.Contains(told[0], c.told) {
				return fmt.Errorf("%s: told %q, want %q", name, told, c.told)
			}
			return nil
		})
		b.change(list, func(l *v1beta1.ImageListPullJob) { l.Annotations = map[string]string{"touched": ""} })
	}
	b.Still()
	if asked := b.Asked(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "deadline"}}
	b.change(list, func(l *v1beta1.ImageListPullJob) {
		l.Spec.CompletionPolicy.ActiveDeadlineSeconds = ptr.To[int64](600)
	})
	b.hasJobs(list, "nginx:1")
	if told := b.events(list, "InvalidSpec"); len(told) != 1 || !strings.HasSuffix(told[0], " 1") {
		t.Errorf("told %q", told)
	}
}

// An image that no registry can have stops no other, and is reported once.
func TestImpossibleImage(t *testing.T) {
	b := start(t)
	list := b.create("ahead", []string{"Not An Image", "nginx:1"})
	jobs := b.hasJobs(list, "nginx:1")
	b.does(jobs["nginx:1"], 1, 0, 1, 0)
	b.counts(list, 0, 1, 1, 2, false)
	b.Until(func() error {
		if told := b.events(list, "InvalidSpec"); len(told) != 1 || !strings.Contains(told[0], "spec.images[0]") ||
			!strings.HasSuffix(told[0], " 1") {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
}

// The API server stores numbers that are too large for Go. Neither such a list nor such a job stops the others.
func TestMalformed(t *testing.T) {
	b := start(t)
	untyped := func(kind, name, spec string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		text := fmt.Sprintf(
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":%q,"metadata":{"namespace":%q,"name":%q},"spec":%s}`,
			kind, b.Namespace, name, spec)
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return o
	}
	list := untyped("ImageListPullJob", "odd", `{"images":["nginx:1"],"completionPolicy":{},"parallelism":99999999999}`)
	job := untyped("ImagePullJob", "odd", `{"image":"nginx:1","completionPolicy":{},"parallelism":99999999999}`)
	for _, o := range []*unstructured.Unstructured{list, job} {
		if err := b.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	b.Until(func() error {
		told := b.events(&v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{UID: list.GetUID()}}, "InvalidSpec")
		if len(told) != 1 || !strings.Contains(told[0], "parallelism") && !strings.Contains(told[0], "99999999999") {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
	good := b.create("good", []string{"nginx:1"})
	mine := &metav1.PartialObjectMetadata{}
	b.Until(func() error {
		all := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{
			APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJobList",
		}}
		if err := b.Client.List(t.Context(), all, client.InNamespace(b.Namespace)); err != nil {
			return err
		}
		for i := range all.Items {
			if metav1.IsControlledBy(&all.Items[i], good) {
				mine = &all.Items[i]
				return nil
			}
		}
		return errors.New("no job")
	})
	// Neither does one of its own, which is replaced.
	raw := untyped("ImagePullJob", mine.Name, "{}")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parallelism":99999999999}}`))
	if err := b.Client.Patch(t.Context(), raw, patch); err != nil {
		t.Fatal(err)
	}
	b.Until(func() error {
		fresh := untyped("ImagePullJob", mine.Name, "{}")
		if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(mine), fresh); err != nil {
			return err
		}
		if fresh.GetUID() == mine.UID {
			return errors.New("the odd job is still there")
		}
		return nil
	})
}

// What refuses jobs is reported, the status is written nevertheless, and the list goes on when it is over.
func TestRefusedJobs(t *testing.T) {
	b := newBench(t)
	refusing := make(chan struct{})
	b.start(func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				select {
				case <-refusing:
					return c.Create(ctx, o, opts...)
				default:
					return apierrors.NewGenericServerResponse(http.StatusForbidden, "post",
						v1beta1.GroupVersion.WithResource("imagepulljobs").GroupResource(), o.GetName(), "exceeded quota", 0, false)
				}
			},
		})
	})
	list := b.create("ahead", []string{"nginx:1", "redis:1"})
	b.counts(list, 0, 0, 0, 2, false)
	b.Until(func() error {
		if told := b.events(list, "FailedCreate"); len(told) == 0 || !strings.Contains(told[0], "exceeded quota") {
			return fmt.Errorf("told %q", told)
		}
		return nil
	})
	close(refusing)
	b.hasJobs(list, "nginx:1", "redis:1")
	b.Still()
	if asked := requests.About(b.Asked(), "/status 200"); len(asked) != 1 {
		t.Errorf("the status took %q", asked)
	}
}

// A process that starts while its cache has not seen what the last one made does not make it again.
func TestMadeBefore(t *testing.T) {
	b := newBench(t)
	list := b.create("ahead", []string{"nginx:1", "redis:1"})
	blind := func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
		})
	}
	b.reconcile(b.direct(blind), list, 1)
	first := b.hasJobs(list, "nginx:1", "redis:1")
	r := b.direct(blind)
	b.reconcile(r, list, 3)
	for image, job := range b.hasJobs(list, "nginx:1", "redis:1") {
		if first[image].UID != job.UID {
			t.Errorf("%s is another job", image)
		}
	}
	// One that goes before the cache has shown it is made again, by a pass that no event asks for.
	if err := b.Client.Delete(t.Context(), first["nginx:1"]); err != nil {
		t.Fatal(err)
	}
	after := b.reconcile(r, list, 1)
	if after == 0 {
		t.Fatal("there is no next pass")
	}
	b.ahead.Store(int64(after))
	b.reconcile(r, list, 2)
	b.hasJobs(list, "nginx:1", "redis:1")
}

// A cache that still shows the list as it was before does not have it written again.
func TestOwnWrites(t *testing.T) {
	b := newBench(t)
	list := b.create("ahead", []string{"nginx:1"})
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ImageListPullJob"))
	if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(list), old); err != nil {
		t.Fatal(err)
	}
	writes := map[string]int{}
	r := b.direct(func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
			) error {
				if raw, ok := o.(*unstructured.Unstructured); ok && raw.GetKind() == old.GetKind() {
					old.DeepCopyInto(raw)
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
			Patch: func(
				ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
			) error {
				writes["label"]++
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(
				ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				opts ...client.SubResourcePatchOption,
			) error {
				writes[sub]++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		})
	})
	for range 3 {
		b.ahead.Add(int64(time.Second)) // each status would have another time in it
		b.reconcile(r, list, 1)
	}
	if writes["label"] != 1 || writes["status"] != 1 {
		t.Errorf("writes %v, want one of each", writes)
	}
}

// direct is a reconciler that is called by the test, and has no cache.
func (b *bench) direct(wrap func(client.WithWatch) client.WithWatch) *imagelistpulljob.Reconciler {
	b.Helper()
	c, err := client.NewWithWatch(b.Config, client.Options{Scheme: b.Scheme})
	if err != nil {
		b.Fatal(err)
	}
	r, err := imagelistpulljob.New(wrap(c), imagelistpulljob.Options{Live: b.Client, Now: b.now})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// reconcile has it look at a list some times, and says after how long it wants to look again.
func (b *bench) reconcile(
	r *imagelistpulljob.Reconciler, list *v1beta1.ImageListPullJob, times int,
) (after time.Duration) {
	b.Helper()
	for range times {
		result, err := r.Reconcile(b.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(list)})
		if err != nil {
			b.Fatal(err)
		}
		after = result.RequeueAfter
	}
	return after
}
