package pullsecrets

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// Nothing of a deleted copy is kept, although the cache shows its end before the API server answers.
func TestForgetsDeleted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, time.Now)
	api, err := binding.New("test", server, binding.Options{})
	if err != nil {
		t.Fatal(err)
	}
	users := []string{"shop/web"}
	k := New(api, "nodes", func(context.Context, types.NamespacedName) ([]string, error) { return users, nil })
	source := types.NamespacedName{Namespace: "shop", Name: "login"}
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	job.Spec.PullSecrets = []string{source.Name}
	for _, err := range []error{
		k.Index(t.Context(), server),
		server.Put(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: source.Name},
			Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if references, _, err := k.Claim(t.Context(), job); err != nil || len(references) != 1 {
		t.Fatalf("claimed %v, %v", references, err)
	}
	users = nil
	if err := k.Release(t.Context(), types.NamespacedName{Namespace: job.Namespace, Name: job.Name}); err != nil {
		t.Fatal(err)
	}
	if kept, _ := k.writes.Deleting(source); len(kept) > 0 {
		t.Errorf("kept %v", kept)
	}
}
