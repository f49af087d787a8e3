package runtimeclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/write"
)

func newPod(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid-web", Labels: map[string]string{"app": "web"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	if change != nil {
		change(pod)
	}
	return pod
}

func raw(t types.PatchType, subresource, data string) *write.Write {
	return &write.Write{Verb: write.Patch, Object: newPod(nil), Subresource: subresource, Type: t, Body: write.Bytes(data)}
}

// requests records each request of a client, and fails it where err is not nil.
type requests struct {
	client.Client

	sent []string
	err  error
}

func newRequests(t *testing.T, err error) *requests {
	t.Helper()
	r := &requests{err: err}
	stored := apiserver.New(clientgoscheme.Scheme, func() time.Time { return time.Unix(1_800_000_000, 0) })
	if err := stored.Put(newPod(nil)); err != nil {
		t.Fatal(err)
	}
	patch := func(subresource string, o client.Object, p client.Patch) error {
		data, err := p.Data(o)
		if err != nil {
			return err
		}
		r.sent = append(r.sent,
			fmt.Sprintf("PATCH %s/%s %s %s %s", o.GetNamespace(), o.GetName(), subresource, p.Type(), data))
		return r.err
	}
	r.Client = interceptor.NewClient(stored, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			r.sent = append(r.sent, "POST "+o.GetNamespace()+"/"+o.GetName())
			if r.err != nil {
				return r.err
			}
			return c.Create(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			all := (&client.DeleteOptions{}).ApplyOptions(options)
			sent := fmt.Sprintf("DELETE %s/%s of %s", o.GetNamespace(), o.GetName(), *all.Preconditions.UID)
			if version, policy := all.Preconditions.ResourceVersion, all.PropagationPolicy; version != nil && policy != nil {
				sent += fmt.Sprintf(" at %s %s", *version, *policy)
			}
			r.sent = append(r.sent, sent)
			if r.err != nil {
				return r.err
			}
			return c.Delete(ctx, o, options...)
		},
		SubResourceCreate: func(
			ctx context.Context, c client.Client, name string, o, body client.Object, options ...client.SubResourceCreateOption,
		) error {
			sent := fmt.Sprintf("POST %s/%s %s", o.GetNamespace(), o.GetName(), name)
			if eviction, is := body.(*policyv1.Eviction); is {
				sent += fmt.Sprintf(" of %s", *eviction.DeleteOptions.Preconditions.UID)
			}
			r.sent = append(r.sent, sent)
			if r.err != nil {
				return r.err
			}
			return c.SubResource(name).Create(ctx, o, body, options...)
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption,
		) error {
			if err := patch("-", o, p); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, name string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			if err := patch(name, o, p); err != nil {
				return err
			}
			return c.SubResource(name).Patch(ctx, o, p, options...)
		},
	})
	return r
}

// Each write is one request, and returns the object that the API server answers.
func TestSend(t *testing.T) {
	label := func(o write.Object) string { return o.GetLabels()["step"] }
	phase := func(o write.Object) string { return string(o.(*corev1.Pod).Status.Phase) }
	name := func(o write.Object) string { return o.GetName() }
	cases := map[string]struct {
		write  *write.Write
		sent   string
		answer func(write.Object) string // nil where there is no object
		want   string
	}{
		"create: the object is created as it is": {
			write:  &write.Write{Verb: write.Create, Object: newPod(func(p *corev1.Pod) { p.Name = "new" })},
			sent:   "POST shop/new",
			answer: name,
			want:   "new",
		},
		"only the object that was observed is deleted, and not another one of its name": {
			write: &write.Write{Verb: write.Delete, Object: newPod(nil)},
			sent:  "DELETE shop/web of uid-web",
		},
		"evict: budgets may refuse what the eviction would delete, and only that object": {
			write: &write.Write{Verb: write.Evict, Object: newPod(nil)},
			sent:  "POST shop/web eviction of uid-web",
		},
		"delete a version: an object that has changed stays": {
			&write.Write{
				Verb: write.Delete, Object: newPod(func(p *corev1.Pod) { p.ResourceVersion = "1" }),
				SameVersion: true, Propagation: metav1.DeletePropagationBackground,
			},
			"DELETE shop/web of uid-web at 1 Background", nil, "",
		},
		"JSON patch: the operations are sent in their order": {
			write: write.JSON(newPod(nil), write.Main, write.Test("/metadata/uid", "uid-web"),
				write.Add("/metadata/labels/step", "json")),
			sent:   `PATCH shop/web - application/json-patch+json [{"op":"test","path":"/metadata/uid","value":"uid-web"},{"op":"add","path":"/metadata/labels/step","value":"json"}]`,
			answer: label,
			want:   "json",
		},
		"merge patch: a patch has its own type": {
			raw(types.MergePatchType, write.Main, `{"metadata":{"labels":{"step":"merge"}}}`),
			`PATCH shop/web - application/merge-patch+json {"metadata":{"labels":{"step":"merge"}}}`, label, "merge",
		},
		"status: the patch goes to the subresource": {
			raw(types.MergePatchType, write.Status, `{"status":{"phase":"Running"}}`),
			`PATCH shop/web status application/merge-patch+json {"status":{"phase":"Running"}}`, phase, "Running",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, before := newRequests(t, nil), c.write.Object.DeepCopyObject()
			answer, err := runtimeclient.Send(t.Context(), r, c.write)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.sent}, r.sent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (answer != nil) != (c.answer != nil) || answer != nil && c.answer(answer) != c.want {
				t.Errorf("answer %v, want %q", answer, c.want)
			}
			if diff := cmp.Diff(before, c.write.Object.DeepCopyObject()); diff != "" {
				t.Errorf("the object of the write has changed (-before +after):\n%s", diff)
			}
			if answer == c.write.Object {
				t.Error("the answer is the object of the write")
			}
		})
	}
}

// A field manager and the force of an apply are options of the request.
func TestFieldOwner(t *testing.T) {
	type sent struct {
		manager string
		force   bool
	}
	var got []sent
	record := func(manager string, force *bool) error {
		got = append(got, sent{manager, force != nil && *force})
		return nil
	}
	c := interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, _ client.Object, all ...client.CreateOption) error {
			return record((&client.CreateOptions{}).ApplyOptions(all).FieldManager, nil)
		},
		Patch: func(
			_ context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, all ...client.PatchOption,
		) error {
			o := (&client.PatchOptions{}).ApplyOptions(all)
			return record(o.FieldManager, o.Force)
		},
		SubResourcePatch: func(
			_ context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch, all ...client.SubResourcePatchOption,
		) error {
			o := (&client.SubResourcePatchOptions{}).ApplyOptions(all)
			return record(o.FieldManager, o.Force)
		},
	})
	apply := func(subresource string, force bool) *write.Write {
		w := raw(types.ApplyPatchType, subresource, `{}`)
		w.FieldOwner, w.Force = "me", force
		return w
	}
	for _, w := range []*write.Write{
		{Verb: write.Create, Object: newPod(nil), FieldOwner: "me"},
		apply(write.Main, true), apply(write.Main, false), apply(write.Status, true),
	} {
		if _, err := runtimeclient.Send(t.Context(), c, w); err != nil {
			t.Fatal(err)
		}
	}
	if want := []sent{{"me", false}, {"me", true}, {"me", false}, {"me", true}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// An answer to a patch contains nothing of the object that the patch was decided upon, whose labels the API server may
// have removed.
func TestAnswerIsTheServers(t *testing.T) {
	w := raw(types.MergePatchType, write.Main, `{"metadata":{"labels":{"step":"merge"}}}`)
	w.Object = newPod(func(p *corev1.Pod) { p.Annotations = map[string]string{"removed": "meanwhile"} })
	answer, err := runtimeclient.Send(t.Context(), newRequests(t, nil), w)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.GetAnnotations(); len(got) > 0 || answer.GetUID() != "uid-web" {
		t.Errorf("annotations %v of %s", got, answer.GetUID())
	}
}

// An untyped object keeps its kind, without which no request could be sent.
func TestSendUntyped(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	object.SetNamespace("shop")
	object.SetName("web")
	answer, err := runtimeclient.Send(t.Context(), newRequests(t, nil),
		write.JSON(object, write.Main, write.Add("/metadata/labels/step", "untyped")))
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetLabels()["step"] != "untyped" || answer.GetObjectKind().GroupVersionKind().Kind != "Pod" {
		t.Errorf("answer %v", answer)
	}
}

// A created object has the fields of its templates that their types lack. The answer has the type of the object.
func TestSendUnknownFields(t *testing.T) {
	values := map[string]any{"spec": map[string]any{"newer": "x"}}
	pod := newPod(func(p *corev1.Pod) { p.Name, p.UID = "created", "" })
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "created"}}
	if err := errors.Join(
		revision.KeepUnknownFields(pod, values),
		revision.KeepUnknownFields(job, map[string]any{"spec": map[string]any{"template": values}}),
	); err != nil {
		t.Fatal(err)
	}
	for _, object := range []write.Object{pod, job} {
		var sent []byte
		c := interceptor.NewClient(apiserver.New(clientgoscheme.Scheme, time.Now), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				sent, _ = json.Marshal(o)
				return c.Create(ctx, o, options...)
			},
		})
		answer, err := runtimeclient.Send(t.Context(), c, &write.Write{Verb: write.Create, Object: object})
		if err != nil {
			t.Fatal(err)
		}
		if reflect.TypeOf(answer) != reflect.TypeOf(object) || answer.GetName() != "created" || answer.GetUID() == "" {
			t.Errorf("answer %v", answer)
		}
		if !strings.Contains(string(sent), `"newer":"x"`) || strings.Contains(string(sent), revision.UnknownFieldsKey) {
			t.Errorf("sent %s", sent)
		}
	}
}

// Errors are those of the client, so that package write classifies them. There is no object beside an error.
func TestSendFails(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	add := write.Add("/metadata/labels/step", "json")
	patches := write.JSON(newPod(nil), write.Main, add)
	cases := map[string]struct {
		write             *write.Write
		err               error
		outdated, refused bool
	}{
		"failed test of a patch: the object is another one than was observed": {
			write: patches,
			err: apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "",
				"the server rejected our request due to an error in our request", 0, false),
			outdated: true,
			refused:  true,
		},
		"patch of an object that is gone: there is nothing to change": {
			write:    patches,
			err:      apierrors.NewNotFound(pods, "web"),
			outdated: true,
			refused:  true,
		},
		"outage: the write may have been made": {patches, apierrors.NewInternalError(errors.New("etcd")), false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRequests(t, c.err)
			answer, err := runtimeclient.Send(t.Context(), r, c.write)
			if !errors.Is(err, c.err) || answer != nil || len(r.sent) != 1 {
				t.Errorf("got %v, %v after %v", answer, err, r.sent)
			}
			if write.IsOutdated(err) != c.outdated || write.IsRefused(err) != c.refused {
				t.Errorf("outdated %t, refused %t", write.IsOutdated(err), write.IsRefused(err))
			}
		})
	}
}

// What cannot be sent is an error before any request.
func TestSendNothing(t *testing.T) {
	body := func() *write.Write {
		return write.JSON(newPod(nil), write.Main, write.Add("/metadata/labels/step", func() {}))
	}
	for name, w := range map[string]*write.Write{
		"no verb":                 {Object: newPod(nil)},
		"unknown verb":            {Verb: "Replace", Object: newPod(nil)},
		"body that has no JSON":   body(),
		"status that has no JSON": func() *write.Write { w := body(); w.Subresource = write.Status; return w }(),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequests(t, nil)
			if answer, err := runtimeclient.Send(t.Context(), r, w); err == nil || answer != nil || len(r.sent) > 0 {
				t.Errorf("got %v, %v after %v", answer, err, r.sent)
			}
		})
	}
}
