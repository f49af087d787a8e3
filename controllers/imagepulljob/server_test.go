package imagepulljob

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/test/rig/storedtest"
)

// overServer returns a reconciler whose cache has what a server in memory has. request is called before each request,
// as "patch web status", and may fail it.
func overServer(t *testing.T, o Options, request func(what string) error) (*apiserver.Server, *Reconciler) {
	t.Helper()
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	server := apiserver.New(kinds, o.Now)
	do := func(verb, name, sub string, send func() error) error {
		if err := request(strings.TrimSpace(verb + " " + name + " " + sub)); err != nil {
			return err
		}
		return send()
	}
	writes := interceptor.NewClient(server, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return do("delete", o.GetName(), "", func() error { return c.Delete(ctx, o, options...) })
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption,
		) error {
			return do("patch", o.GetName(), "", func() error { return c.Patch(ctx, o, p, options...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			return do("patch", o.GetName(), sub, func() error { return c.SubResource(sub).Patch(ctx, o, p, options...) })
		},
	})
	o.Live = interceptor.NewClient(server, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
	) error {
		return do("get", key.Name, "", func() error { return c.Get(ctx, key, o, options...) })
	}})
	r, err := New(writes, o)
	if err != nil {
		t.Fatal(err)
	}
	byInterest := func(o client.Object) []string { return r.keysOf(storedtest.Raw(t, gvk(), o)) }
	for _, err := range []error{
		server.IndexField(t.Context(), &v1beta1.ImagePullJob{}, jobField, byInterest),
		server.IndexField(t.Context(), &corev1.Pod{}, nodeField, nodeOf),
		r.secrets.Index(t.Context(), server),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return server, r
}

func put(t *testing.T, server *apiserver.Server, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := server.Put(o); err != nil {
			t.Fatal(err)
		}
	}
}

// dockerSecret is a pull secret in the namespace of the jobs.
func dockerSecret(name, config string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)},
	}
}
