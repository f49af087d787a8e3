package nodeimage

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// What cannot be read exists. An answer is remembered, and a question that failed is asked again.
func TestIsGone(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "a"}
	job := identity{jobKind(), name, "uid"}
	secret := secretOf(v1beta1.ReferenceObject{Namespace: "shop", Name: "a"})
	unnamed, down := identity{jobKind(), types.NamespacedName{Name: "a"}, ""}, apierrors.NewInternalError(errors.New("x"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))
	for why, c := range map[string]struct {
		id    identity
		have  types.UID
		err   error
		gone  bool
		fails bool
		reads int // of two looks, past the cache
	}{
		"a job that exists":                 {id: job, have: "uid", reads: 0},
		"a job that is gone":                {id: job, gone: true, reads: 1},
		"another job has the name":          {id: job, have: "other", gone: true, reads: 1},
		"a job that cannot be read":         {id: job, err: forbidden, reads: 1},
		"an API server that is down":        {id: job, err: down, fails: true, reads: 2},
		"a secret that cannot be read":      {id: secret, err: forbidden, reads: 1},
		"a secret that is gone comes again": {id: secret, gone: true, reads: 2},
		"a name that no object has":         {id: unnamed, gone: true},
	} {
		scheme := runtime.NewScheme()
		if err := v1beta1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		cached := apiserver.New(scheme, time.Now)
		if c.have != "" {
			if err := cached.Put(&v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
				Namespace: name.Namespace, Name: name.Name, UID: c.have,
			}}); err != nil {
				t.Fatal(err)
			}
		}
		reads := 0
		live := interceptor.NewClient(cached, interceptor.Funcs{Get: func(
			ctx context.Context, to client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			if reads++; c.err != nil {
				return c.err
			}
			if c.id.kind != jobKind() {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return to.Get(ctx, key, o, opts...)
		}})
		r, err := New(cached, Options{Live: live, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if gone, err := r.isGone(t.Context(), c.id); gone != c.gone || (err != nil) != c.fails {
				t.Errorf("%s: gone %t, %v", why, gone, err)
			}
		}
		if reads != c.reads {
			t.Errorf("%s: read %d times past the cache, want %d", why, reads, c.reads)
		}
	}
}
