package pullsecrets_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/pullsecrets"
	"github.com/kruisekit/kruisekit/internal/binding"
)

// server has secrets. Its lists are those of a cache that has seen nothing, unless it is caught up.
type server struct {
	client.Client

	secrets  map[types.NamespacedName]*corev1.Secret
	caughtUp bool
	err      error
	reads    int
	writes   []string
	version  int
	// holds is what the reads of a namespace wait for.
	holds map[string]chan struct{}
}

func (s *server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if hold := s.holds[key.Namespace]; hold != nil {
		hold <- struct{}{}
		<-hold
	}
	s.reads++
	if s.err != nil {
		return s.err
	}
	secret := s.secrets[key]
	if secret == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	secret.DeepCopyInto(into.(*corev1.Secret))
	return nil
}

func (s *server) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	for key, secret := range s.secrets {
		if s.caughtUp && key.Namespace == "nodes" {
			list := into.(*corev1.SecretList)
			list.Items = append(list.Items, *secret.DeepCopy())
		}
	}
	return nil
}

func (s *server) put(verb string, o client.Object) error {
	s.writes = append(s.writes, verb)
	if s.err != nil {
		return s.err
	}
	if verb == "create" && s.secrets[client.ObjectKeyFromObject(o)] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, o.GetName())
	}
	s.version++
	o.SetResourceVersion(fmt.Sprint(s.version))
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprint(s.version)))
	}
	s.secrets[client.ObjectKeyFromObject(o)] = o.DeepCopyObject().(*corev1.Secret)
	return nil
}

func (s *server) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return s.put("create", o)
}

func (s *server) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	stored := s.secrets[client.ObjectKeyFromObject(o)]
	data, err := patch.Data(o)
	if err == nil {
		stored.DeepCopyInto(o.(*corev1.Secret))
		err = json.Unmarshal(data, o)
	}
	if err == nil && o.GetResourceVersion() != stored.ResourceVersion {
		err = apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, o.GetName(), nil)
	}
	if err != nil {
		return err
	}
	return s.put("update", o)
}

func (s *server) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	s.writes = append(s.writes, "delete")
	delete(s.secrets, client.ObjectKeyFromObject(o))
	return s.err
}

func docker(user string) []byte { return []byte(`{"auths":{"r":{"username":"` + user + `"}}}`) }

func (s *server) source(name, content string) {
	s.secrets[types.NamespacedName{Namespace: "shop", Name: name}] = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: docker(content)},
	}
}

func jobNamed(namespace, name string, secrets ...string) *v1beta1.ImagePullJob {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	job.Spec.PullSecrets = secrets
	return job
}

func start(t *testing.T, unobserved bool) (*server, *pullsecrets.Keeper) {
	t.Helper()
	s := &server{secrets: map[types.NamespacedName]*corev1.Secret{}}
	api, err := binding.New("test", s, binding.Options{Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return s, pullsecrets.New(api, pullsecrets.Options{Namespace: "nodes", Unobserved: unobserved})
}

func (s *server) took(t *testing.T, writes ...string) {
	t.Helper()
	if !slices.Equal(s.writes, writes) {
		t.Errorf("writes %v, want %v", s.writes, writes)
	}
	s.writes = nil
}

// A copy is made once, shared, kept as its source is, and released with its last job; all of it before any cache shows
// a write.
func TestCopies(t *testing.T) {
	s, k := start(t, false)
	s.source("pull", "a")
	first, second := jobNamed("shop", "first", "pull"), jobNamed("shop", "second", "pull")
	plan, err := k.Claim(t.Context(), first)
	if err != nil || len(plan.References) != 1 || plan.References[0].Namespace != "nodes" {
		t.Fatalf("got %+v, %v", plan, err)
	}
	s.took(t, "create")
	if _, err := k.Claim(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s.took(t)
	if again, err := k.Claim(t.Context(), second); err != nil || again.References[0] != plan.References[0] {
		t.Errorf("got %+v, %v", again, err)
	}
	s.took(t, "update")
	if s.reads > 1 {
		t.Errorf("the source was read %d times", s.reads)
	}
	s.source("pull", "b")
	var woken []string
	err = k.Changed(t.Context(), []*v1beta1.ImagePullJob{first, second}, func(job *v1beta1.ImagePullJob) {
		woken = append(woken, job.Name)
	})
	if slices.Sort(woken); err != nil || !slices.Equal(woken, []string{"first", "second"}) {
		t.Errorf("woken %v, %v", woken, err)
	}
	if _, err := k.Claim(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s.took(t, "update")
	copied := s.secrets[types.NamespacedName{Namespace: "nodes", Name: plan.References[0].Name}]
	if copied == nil || !bytes.Equal(copied.Data[corev1.DockerConfigJsonKey], docker("b")) ||
		len(pullsecrets.Users(copied)) != 2 {
		t.Errorf("the copy is %+v", copied)
	}
	s.caughtUp = true
	for _, job := range []*v1beta1.ImagePullJob{first, second} {
		job.Status.CompletionTime = &metav1.Time{Time: time.Unix(1, 0)}
		if err := k.Release(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	s.took(t, "update", "delete")
}

// A job whose secrets are slow to read holds up its own namespace, and no other.
func TestSlowNamespace(t *testing.T) {
	s, k := start(t, true)
	s.source("pull", "a")
	hold := make(chan struct{})
	s.holds = map[string]chan struct{}{"slow": hold}
	done := make(chan error)
	go func() {
		_, err := k.Claim(t.Context(), jobNamed("slow", "web", "pull"))
		done <- err
	}()
	<-hold // it reads
	if plan, err := k.Claim(t.Context(), jobNamed("shop", "web", "pull")); err != nil || len(plan.References) != 1 {
		t.Errorf("got %+v, %v", plan, err)
	}
	hold <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestSources(t *testing.T) {
	t.Run("where nodes read already, nothing is copied", func(t *testing.T) {
		s, k := start(t, false)
		plan, err := k.Claim(t.Context(), jobNamed("nodes", "web", "pull"))
		if err != nil || len(plan.References) != 1 || s.reads != 0 {
			t.Errorf("got %+v after %d reads, %v", plan, s.reads, err)
		}
		s.took(t)
	})
	t.Run("a source that does not exist is noted, and read again when it is touched", func(t *testing.T) {
		s, k := start(t, false)
		job := jobNamed("shop", "web", "pull")
		for range 2 {
			if plan, err := k.Claim(t.Context(), job); err != nil || len(plan.Notes) != 1 || s.reads != 1 {
				t.Errorf("got %+v after %d reads, %v", plan, s.reads, err)
			}
		}
		s.source("pull", "a")
		k.Touched(types.NamespacedName{Namespace: "shop", Name: "pull"})
		if plan, err := k.Claim(t.Context(), job); err != nil || len(plan.References) != 1 {
			t.Errorf("got %+v, %v", plan, err)
		}
	})
	t.Run("unobserved sources are read each time", func(t *testing.T) {
		s, k := start(t, true)
		for range 3 {
			if _, err := k.Claim(t.Context(), jobNamed("shop", "web", "pull")); err != nil {
				t.Fatal(err)
			}
		}
		if s.reads != 3 {
			t.Errorf("%d reads", s.reads)
		}
	})
	t.Run("what no job has read is not polled, and others are forgotten", func(t *testing.T) {
		s, k := start(t, false)
		s.source("pull", "a")
		job := jobNamed("shop", "web", "pull")
		never := func(*v1beta1.ImagePullJob) { t.Error("a job was woken") }
		if err := k.Changed(t.Context(), []*v1beta1.ImagePullJob{job}, never); err != nil || s.reads != 0 {
			t.Errorf("%d reads, %v", s.reads, err)
		}
		if _, err := k.Claim(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(k.Changed(t.Context(), nil, never),
			k.Changed(t.Context(), []*v1beta1.ImagePullJob{job}, never)); err != nil || s.reads != 1 {
			t.Errorf("%d reads, %v", s.reads, err)
		}
	})
	t.Run("an API server that fails is an error, and no copy is lost", func(t *testing.T) {
		s, k := start(t, false)
		s.err = errors.New("unavailable")
		if _, err := k.Claim(t.Context(), jobNamed("shop", "web", "pull")); err == nil {
			t.Error("the claim succeeded")
		}
		s.took(t)
	})
}

// A copy of an earlier process, which the cache does not show yet, is found by its name.
func TestCopyOfAnEarlierProcess(t *testing.T) {
	s, k := start(t, false)
	s.source("pull", "a")
	job := jobNamed("shop", "web", "pull")
	if _, err := k.Claim(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	api, err := binding.New("test", s, binding.Options{Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	later := pullsecrets.New(api, pullsecrets.Options{Namespace: "nodes"})
	if _, err := later.Claim(t.Context(), job); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v", err)
	}
	s.took(t, "create", "create")
	if plan, err := later.Claim(t.Context(), job); err != nil || len(plan.References) != 1 {
		t.Errorf("got %+v, %v", plan, err)
	}
	s.took(t)
}
