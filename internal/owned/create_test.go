package owned_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/write"
)

// recorder keeps the names that exist now.
type recorder struct{ known []string }

func (r *recorder) Record(_ types.NamespacedName, _ *write.Write, answer write.Object, err error) {
	if err == nil {
		r.known = append(r.known, answer.GetName())
	}
}

// An object that exists already is the answer if the owner controls it, and else the error.
func TestCreate(t *testing.T) {
	job := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "job", UID: "uid-job"}}
	owner := *metav1.NewControllerRef(job, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "a", OwnerReferences: []metav1.OwnerReference{owner},
		}}
		change(p)
		return p
	}
	cases := map[string]struct {
		have         *corev1.Pod
		gone         bool // before it is read
		existed      bool
		taken        bool
		known, wants int
	}{
		"no pod has the name": {known: 1, wants: 1},
		"an earlier process":  {have: pod(func(*corev1.Pod) {}), existed: true, known: 1, wants: 1},
		"another owner":       {have: pod(func(p *corev1.Pod) { p.OwnerReferences = nil }), taken: true},
		"a pod that is being deleted": {
			have: pod(func(p *corev1.Pod) {
				p.Finalizers, p.DeletionTimestamp = []string{"example.com/a"}, &metav1.Time{Time: time.Unix(1, 0)}
			}),
			existed: true, wants: 1,
		},
		"a pod that is gone by now": {have: pod(func(*corev1.Pod) {}), gone: true, existed: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			server := apiserver.New(scheme, time.Now)
			if c.have != nil {
				if err := server.Put(c.have); err != nil {
					t.Fatal(err)
				}
			}
			api, err := binding.New("test", interceptor.NewClient(server, interceptor.Funcs{Get: func(
				ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption,
			) error {
				if c.gone {
					return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
				}
				return server.Get(ctx, key, o)
			}}), binding.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ledger := &recorder{}
			creation := &write.Write{Verb: write.Create, Object: pod(func(*corev1.Pod) {})}
			have, existed, err := owned.Create(t.Context(), api, job, creation, ledger)
			if existed != c.existed || (err != nil) != c.taken || err != nil && !apierrors.IsAlreadyExists(errors.Unwrap(err)) {
				t.Errorf("existed %t, %v", existed, err)
			}
			if (have != nil) != (c.wants == 1) || len(ledger.known) != c.known {
				t.Errorf("have %v, recorded %v", have, ledger.known)
			}
		})
	}
}
