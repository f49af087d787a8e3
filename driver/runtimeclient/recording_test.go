package runtimeclient_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake" //nolint:depguard // what authors of operators test with
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// counted is a client that counts its requests, and whose writes fail with err once they are made.
type counted struct {
	client.WithWatch

	writes, reads int
	err           error
}

func newCounted(stored ...client.Object) *counted {
	c := &counted{}
	after := func(err error) error {
		c.writes++
		return errors.Join(err, c.err)
	}
	server := fake.NewClientBuilder().WithObjects(stored...).WithStatusSubresource(&corev1.Pod{}).Build()
	c.WithWatch = interceptor.NewClient(server, interceptor.Funcs{
		Get: func(
			ctx context.Context, s client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption,
		) error {
			c.reads++
			return s.Get(ctx, key, into, o...)
		},
		Create: func(ctx context.Context, s client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if object.GetUID() == "" {
				object.SetUID("uid-new")
			}
			return after(s.Create(ctx, object, o...))
		},
		Update: func(ctx context.Context, s client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			return after(s.Update(ctx, object, o...))
		},
		Patch: func(
			ctx context.Context, s client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption,
		) error {
			return after(s.Patch(ctx, object, p, o...))
		},
		Delete: func(ctx context.Context, s client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			return after(s.Delete(ctx, object, o...))
		},
		SubResourceCreate: func(
			ctx context.Context, s client.Client, name string, object, body client.Object, o ...client.SubResourceCreateOption,
		) error {
			return after(s.SubResource(name).Create(ctx, object, body, o...))
		},
		SubResourceUpdate: func(
			ctx context.Context, s client.Client, name string, object client.Object, o ...client.SubResourceUpdateOption,
		) error {
			return after(s.SubResource(name).Update(ctx, object, o...))
		},
		SubResourcePatch: func(
			ctx context.Context, s client.Client, name string, object client.Object, p client.Patch,
			o ...client.SubResourcePatchOption,
		) error {
			return after(s.SubResource(name).Patch(ctx, object, p, o...))
		},
	})
	return c
}

// stored reads a pod as a reconciler does.
func (c *counted) stored(ctx context.Context) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, c.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, pod)
}

var errLost = errors.New("the connection broke")

// recorded is a write of a reconciler, which has observed the pod shop/web.
type recorded struct {
	why   string
	write func(context.Context, client.Client, *corev1.Pod) error
	err   error
	// want are the pods that the ledger shows over a cache without the write.
	want string
	// reads are those of single pods, and none means that no write is sent.
	reads int
	none  bool
}

func recordings() map[string]recorded {
	other := func() *corev1.Pod { return newPod(func(p *corev1.Pod) { p.Name, p.UID = "new", "" }) }
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	label := func(p *corev1.Pod) client.Patch {
		patch := client.MergeFrom(p.DeepCopy())
		p.Labels["step"] = "2"
		return patch
	}
	timeout := apierrors.NewTimeoutError("etcd is slow", 1)
	return map[string]recorded{
		"create": {
			why:   "the cache lacks the pod",
			write: func(ctx context.Context, c client.Client, _ *corev1.Pod) error { return c.Create(ctx, other()) },
			want:  "new web",
		},
		"create, and the caller changes its object": {
			why: "the ledger has what the API server answered",
			write: func(ctx context.Context, c client.Client, _ *corev1.Pod) error {
				made := other()
				err := c.Create(ctx, made)
				made.Labels = map[string]string{"step": "unsaved"}
				return err
			},
			want: "new web",
		},
		"create of unknown outcome": {
			why:   "a live read shows the pod",
			write: func(ctx context.Context, c client.Client, _ *corev1.Pod) error { return c.Create(ctx, other()) },
			err:   timeout,
			want:  "new web",
			reads: 1,
		},
		"create of unknown outcome, of a generated name": {
			why: "no read can show it, and none fails the next pass",
			write: func(ctx context.Context, c client.Client, _ *corev1.Pod) error {
				made := other()
				made.Name, made.GenerateName = "", "new-"
				return c.Create(ctx, made)
			},
			err:  errLost,
			want: "web",
		},
		"update": {
			why: "the cache shows the pod from before",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error {
				p.Labels["step"] = "2"
				return c.Update(ctx, p)
			},
			want: "web step=2",
		},
		"update of unknown outcome": {
			why: "the state before is true of some time",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error {
				p.Labels["step"] = "2"
				return c.Update(ctx, p)
			},
			err:  errLost,
			want: "web",
		},
		"patch": {
			why:   "the cache shows the pod from before",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error { return c.Patch(ctx, p, label(p)) },
			want:  "web step=2",
		},
		"dry run": {
			why: "nothing is written",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error {
				return errors.Join(c.Patch(ctx, p, label(p), client.DryRunAll), c.Delete(ctx, p, client.DryRunAll))
			},
			want: "web",
		},
		"status patch": {
			why: "a subresource answers with the pod",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error {
				patch := client.MergeFrom(p.DeepCopy())
				p.Status.Phase = corev1.PodRunning
				return c.Status().Patch(ctx, p, patch)
			},
			want: "web Running",
		},
		"status patch with a body": {
			why: "the body has the answer",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error {
				body := p.DeepCopy()
				body.Status.Phase = corev1.PodRunning
				return c.SubResource("status").Patch(ctx, p, client.MergeFrom(p.DeepCopy()), client.WithSubResourceBody(body))
			},
			want: "web Running",
		},
		"apply": {
			why: "the configuration names no object of a Go type",
			write: func(ctx context.Context, c client.Client, _ *corev1.Pod) error {
				if err := c.Apply(ctx, corev1ac.Pod("new", "shop"), client.FieldOwner("me")); err == nil {
					return errors.New("the pod is applied")
				}
				return nil
			},
			none: true,
			want: "web",
		},
		"delete": {
			why:   "the cache still has the pod",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error { return c.Delete(ctx, p) },
		},
		"delete by the name": {
			why: "which pod had the name is not known: it counts until the cache shows its end",
			write: func(ctx context.Context, c client.Client, _ *corev1.Pod) error {
				return c.Delete(ctx, named.DeepCopy())
			},
			want: "web",
		},
		"delete of unknown outcome": {
			why:   "the pod may exist: it counts until the cache shows its end",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error { return c.Delete(ctx, p) },
			err:   errLost,
			want:  "web",
		},
		"create and delete": {
			why: "the cache never saw the pod",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error {
				made := other()
				return errors.Join(c.Create(ctx, made), c.Delete(ctx, made))
			},
			want: "web",
		},
		"evict": {
			why: "an eviction deletes",
			write: func(ctx context.Context, c client.Client, p *corev1.Pod) error {
				return c.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{})
			},
		},
		"delete all": {
			why: "the answer does not name the pods",
			write: func(ctx context.Context, c client.Client, _ *corev1.Pod) error {
				if err := c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("shop")); err == nil {
					return errors.New("all are deleted")
				}
				return nil
			},
			none: true,
			want: "web",
		},
	}
}

// Whatever a reconciler writes, its next pass sees, although the cache does not: and it costs no request but the write.
func TestRecording(t *testing.T) {
	owner := types.NamespacedName{Namespace: "shop", Name: "site"}
	for name, row := range recordings() {
		t.Run(name, func(t *testing.T) {
			server := newCounted(newPod(nil))
			pods := ledger.New[*corev1.Pod](server, func() time.Time { return time.Unix(0, 0) })
			claims := ledger.New[*corev1.PersistentVolumeClaim](server, time.Now)
			cached, err := server.stored(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := &runtimeclient.Recording{Client: server, Owner: owner, Ledgers: []driver.Recorder{claims, pods}}
			server.err, server.reads = row.err, 0
			if err := row.write(t.Context(), c, cached.DeepCopy()); !errors.Is(err, row.err) {
				t.Fatal(err)
			}
			server.err = nil
			all, _, err := pods.Overlay(t.Context(), owner, []*corev1.Pod{cached})
			if err != nil {
				t.Fatal(err)
			}
			if got := list(all); got != row.want || server.reads != row.reads || server.writes == 0 != row.none {
				t.Errorf("%s: %q after %d reads and %d writes, want %q", row.why, got, server.reads, server.writes, row.want)
			}
			if others, _, err := claims.Overlay(t.Context(), owner, nil); len(others) > 0 || err != nil {
				t.Errorf("claims %v, %v", others, err)
			}
		})
	}
}

// list returns names of pods with what was written.
func list(pods []*corev1.Pod) string {
	texts := make([]string, len(pods))
	for i, p := range pods {
		texts[i] = p.Name
		if step := p.Labels["step"]; step != "" {
			texts[i] += " step=" + step
		}
		if p.Status.Phase != "" {
			texts[i] += fmt.Sprintf(" %s", p.Status.Phase)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// A pass that is sent with a client that records is recorded once more by none of the two.
func TestRecordingInPass(t *testing.T) {
	owner := types.NamespacedName{Namespace: "shop", Name: "site"}
	server := newCounted()
	pods := ledger.New[*corev1.Pod](server, time.Now)
	ledgers := []driver.Recorder{pods}
	c := &runtimeclient.Recording{Client: server, Owner: owner, Ledgers: ledgers}
	made := newPod(nil)
	made.UID = ""
	if err := c.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		send := driver.Recording(runtimeclient.Sender(c, server), owner, ledgers...)
		_, err := send(t.Context(), &write.Write{Verb: write.Delete, Object: made})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	for _, cached := range [][]*corev1.Pod{nil, {made}} { // the cache sees the creation late
		if all, _, err := pods.Overlay(t.Context(), owner, cached); err != nil || len(all) > 0 {
			t.Errorf("%q, %v", list(all), err)
		}
	}
}
