package imagepull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/imagepull"
)

func updateOf(old, now *v1beta1.NodeImage) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: old, ObjectNew: now}
}

// dockerConfig is a secret with users for registries; the password is the user's name in capitals.
func dockerConfig(name string, users ...string) *corev1.Secret {
	auths := map[string]map[string]string{}
	for i := 0; i < len(users); i += 2 {
		auths[users[i]] = map[string]string{"username": users[i+1], "password": strings.ToUpper(users[i+1])}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		panic(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "config", Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: data},
	}
}

func (s *store) keep(secrets ...*corev1.Secret) {
	s.set(func() {
		for _, secret := range secrets {
			secret.ResourceVersion = "1"
			s.secrets[secret.Namespace+"/"+secret.Name] = secret
		}
	})
}

// opens is a registry that lets some users in.
func opens(users ...string) func(context.Context, call) (string, error) {
	return func(_ context.Context, c call) (string, error) {
		if slices.Contains(users, c.login.Username) {
			return "sha256:1", nil
		}
		return "", fmt.Errorf("pull image %q: %w: 401", c.reference, cri.ErrCredentials)
	}
}

func (i *images) users() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for _, c := range i.calls {
		all = append(all, c.login.Username)
	}
	return all
}

// nodeKeyring has the credentials of the node.
type nodeKeyring struct {
	mu      sync.Mutex
	found   []imagepull.Credential
	err     error
	asked   []string
	dropped int
}

func (k *nodeKeyring) Lookup(_ context.Context, repository string) ([]imagepull.Credential, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, repository)
	return k.found, k.err
}

func (k *nodeKeyring) Forget(string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropped++
}

// The credentials that the registry is asked with, in order. Empty means none.
func TestCredentials(t *testing.T) {
	broken := dockerConfig("broken")
	broken.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"docker.io":{"auth":"?"}}}`)
	node := []imagepull.Credential{{Username: "node", Password: "NODE"}}
	for why, test := range map[string]struct {
		image   string
		secrets []*corev1.Secret
		node    *nodeKeyring
		opens   []string
		want    []string
		fails   string
	}{
		"nobody": {image: "nginx", opens: []string{""}, want: []string{""}},
		"a secret that is missing": {
			image:   "nginx",
			secrets: list(nil, dockerConfig("a", "docker.io", "hub")),
			opens:   []string{"hub"},
			want:    []string{"hub"},
		},
		"the first is refused": {
			image:   "nginx",
			secrets: list(dockerConfig("a", "docker.io/library", "old"), dockerConfig("b", "docker.io", "new")),
			opens:   []string{"new"},
			want:    []string{"old", "new"},
		},
		"all are refused": {
			image:   "nginx",
			secrets: list(dockerConfig("a", "docker.io/library", "old"), dockerConfig("b", "docker.io", "new")),
			want:    []string{"old", "new"},
			fails:   "registry refused the credentials: 401",
		},
		"a malformed secret is skipped": {
			image:   "nginx",
			secrets: list(broken, dockerConfig("a", "docker.io", "hub")),
			opens:   []string{"hub"},
			want:    []string{"hub"},
		},
		"and is part of the failure": {
			image: "nginx", secrets: list(broken), want: []string{""}, fails: "secret config/s0",
		},
		"the node's": {
			image: "nginx", node: &nodeKeyring{found: node}, opens: []string{"node"}, want: []string{"node"},
		},
		"the node's after the secrets": {
			image:   "nginx",
			secrets: list(dockerConfig("a", "docker.io", "hub")),
			node:    &nodeKeyring{found: node},
			opens:   []string{"node"},
			want:    []string{"hub", "node"},
		},
		"a node that fails in part": {
			image: "nginx", node: &nodeKeyring{found: node, err: errRegistry}, opens: []string{"node"}, want: []string{"node"},
		},
		"a node that fails": {
			image: "nginx", node: &nodeKeyring{err: errRegistry}, opens: []string{""}, want: []string{""},
		},
		"the same twice is tried but once": {
			image:   "nginx",
			secrets: list(dockerConfig("a", "docker.io", "node")),
			node:    &nodeKeyring{found: node},
			want:    []string{"node"},
			fails:   "401",
		},
	} {
		t.Run(why, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var names []string
				for i, s := range test.secrets {
					names = append(names, fmt.Sprintf("s%d", i))
					if s != nil {
						s = s.DeepCopy()
						s.Name = names[i]
						w.store.keep(s)
					}
				}
				if test.node != nil {
					w.options.Keyring = test.node
				}
				w.images.pull = opens(test.opens...)
				w.begin()
				ref := mustParse(test.image)
				w.spec(asks(test.image, 0, limited(0)), logsInWith(ref.Name, names...))
				if diff := cmp.Diff(test.want, w.images.users()); diff != "" {
					t.Errorf("users (-want +got):\n%s", diff)
				}
				s := w.tag(test.image)
				if (s.Phase == v1beta1.ImagePhaseFailed) != (test.fails != "") || !strings.Contains(s.Message, test.fails) {
					t.Errorf("status %+v, want a failure with %q", s, test.fails)
				}
				for _, c := range w.images.calls {
					if c.login.Password != strings.ToUpper(c.login.Username) {
						t.Errorf("%s has the password %q", c.login.Username, c.login.Password)
					}
				}
				if test.node != nil && test.node.asked[0] != ref.Repository() {
					t.Errorf("the node was asked for %q", test.node.asked)
				}
			})
		})
	}
}

// ownedBy has a tag owned by jobs, each namespace/name.
func ownedBy(jobs ...string) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) {
		t.OwnerReferences = nil
		for _, job := range jobs {
			ownedByMore(job)(t)
		}
	}
}

func ownedByMore(job string) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) {
		namespace, name, _ := strings.Cut(job, "/")
		t.OwnerReferences = append(t.OwnerReferences, corev1.ObjectReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "ImagePullJob", Namespace: namespace, Name: name,
		})
	}
}

// usedBy makes a secret the copy of one of the first job's namespace.
func usedBy(s *corev1.Secret, jobs ...string) *corev1.Secret {
	namespace, _, _ := strings.Cut(jobs[0], "/")
	s.Annotations = map[string]string{
		v1beta1.ImagePullSecretSourceKey:     namespace + "/" + s.Name,
		v1beta1.ImagePullSecretReferencesKey: strings.Join(jobs, ","),
	}
	return s
}

// A job of another tenant pulls without the secrets that the repository's entry has for others, and does not read them
// again and again. The job that refers to one logs in with it.
func TestSecretsOfOtherTenants(t *testing.T) {
	inWorld(t, func(w *world) {
		w.store.keep(usedBy(dockerConfig("a", "docker.io", "hub"), "shop/web"))
		w.images.pull = opens("hub")
		w.begin()
		w.spec(asks("nginx:1", 0, ownedBy("other/job")), asks("nginx:2", 0, ownedBy("shop/web")), logsInWith("nginx", "a"))
		w.wait(time.Minute)
		w.wants("nginx:1 v0 Failed, nginx:2 v0 Succeeded")
		for _, c := range w.images.calls {
			if c.reference == "nginx:1" && c.login.Username != "" {
				t.Errorf("another tenant's job logs in as %s", c.login.Username)
			}
		}
		if n := len(w.store.reads); n > 2 {
			t.Errorf("the secret was read %d times, want once for each tenant at most", n)
		}
	})
}

// A job that comes to use a copy which is remembered without it has the copy read again.
func TestSecretOfAnotherJobOfTheNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.store.keep(usedBy(dockerConfig("a", "docker.io", "hub"), "shop/web"))
		w.images.pull = opens("hub")
		w.begin()
		w.spec(asks("nginx:1", 0, ownedBy("shop/web")), logsInWith("nginx", "a"))
		w.store.keep(usedBy(dockerConfig("a", "docker.io", "hub"), "shop/web", "shop/later"))
		w.spec(asks("nginx:2", 0, ownedBy("shop/later"), limited(0)))
		w.wants("nginx:1 v0 Succeeded, nginx:2 v0 Succeeded")
		if n := len(w.store.reads); n != 2 {
			t.Errorf("the secret was read %d times", n)
		}
	})
}

// A secret that the memory of an API server does not have yet costs no attempt: it is read once more, with a quorum.
func TestSecretBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		w.store.keep(dockerConfig("a", "docker.io", "hub"))
		w.store.set(func() { w.store.behind = map[string]bool{"config/a": true} })
		w.images.pull = opens("hub")
		w.begin()
		w.spec(asks("nginx:1", 0, limited(0)), logsInWith("nginx", "a"))
		w.wants("nginx:1 v0 Succeeded")
		if n := len(w.store.reads); n != 2 {
			t.Errorf("the secret was read %d times, want once from memory and once with a quorum", n)
		}
	})
}

func list[T any](all ...T) []T { return all }

// A secret is read once in five minutes. What the reference does not do: after a refusal it is read again, so that the
// next attempt has the password that was rotated meanwhile.
func TestSecretsAreRemembered(t *testing.T) {
	inWorld(t, func(w *world) {
		keyring := &nodeKeyring{}
		w.options.Keyring = keyring
		w.store.keep(dockerConfig("a", "docker.io", "old"))
		w.images.pull = opens("old")
		w.begin()
		w.spec(asks("nginx:1", 0), logsInWith("nginx", "a"))
		w.wait(time.Minute)
		w.spec(asks("nginx:2", 0))
		if n := len(w.store.reads); n != 1 {
			t.Errorf("the secret was read %d times", n)
		}
		w.wait(4*time.Minute + time.Second)
		w.spec(asks("nginx:3", 0))
		if n := len(w.store.reads); n != 2 {
			t.Errorf("the secret was read %d times after five minutes", n)
		}
		w.images.pull = opens("new")
		w.store.keep(dockerConfig("a", "docker.io", "new"))
		w.spec(asks("nginx:4", 0))
		w.wait(time.Second)
		if s := w.tag("nginx:4"); s.Phase != v1beta1.ImagePhaseSucceeded {
			t.Errorf("status %+v", s)
		}
		if n := len(w.store.reads); n != 3 || keyring.dropped != 1 {
			t.Errorf("the secret was read %d times, the node's keyring told %d times", n, keyring.dropped)
		}
	})
}

// A failure that is not about credentials leaves what is remembered.
func TestOtherFailuresLeaveSecrets(t *testing.T) {
	inWorld(t, func(w *world) {
		w.store.keep(dockerConfig("a", "docker.io", "old"))
		w.images.pull = fails(errors.New("no space left on device"))
		w.begin()
		w.spec(asks("nginx:1", 0), logsInWith("nginx", "a"))
		w.wait(time.Minute)
		if n := len(w.store.reads); n != 1 || len(w.images.pulled()) != 4 {
			t.Errorf("the secret was read %d times in %d attempts", n, len(w.images.pulled()))
		}
	})
}
