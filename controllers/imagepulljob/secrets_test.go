package imagepulljob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

// A secret has one copy with all jobs under way that name it; it follows its source, comes back, and goes with the last
// job, whether or not that job was seen to end.
func TestCopies(t *testing.T) {
	var sent []string
	var broken string
	o := Options{SecretNamespace: "nodes", Now: func() time.Time { return at }}
	server, r := overServer(t, o, func(what string) error {
		sent = append(sent, what)
		if broken != "" && strings.HasPrefix(what, broken) {
			return errBroken
		}
		return nil
	})
	put(t, server, dockerSecret("login", "{}"))
	jobs := []*pullJob{jobNamed("a", "nginx"), jobNamed("b", "nginx")}
	for _, job := range jobs {
		job.Spec.PullSecrets = []string{"login", "later"}
		put(t, server, job)
	}
	var woken []string
	requeue := func(name client.ObjectKey) { woken = append(woken, name.Name) }
	refresh := func() error {
		secrets, err := r.namedSecrets(t.Context())
		return errors.Join(err, r.secrets.Refresh(t.Context(), secrets, requeue))
	}
	claim := func() error {
		_, _, first := r.secrets.Claim(t.Context(), jobs[0])
		_, _, second := r.secrets.Claim(t.Context(), jobs[1])
		return errors.Join(first, second)
	}
	// refreshWithout refreshes while a request fails, and has the jobs reconciled after that.
	refreshWithout := func(what string) error {
		broken = what
		err := refresh()
		if broken = ""; !errors.Is(err, errBroken) {
			return fmt.Errorf("the refresh returned %w", err)
		}
		return claim()
	}
	for _, step := range []struct {
		why    string
		happen func() error
		// copies are "source config users", and writes how many writes they take.
		copies string
		writes int
		woken  string
	}{
		{"both jobs share a copy", claim, "shop/login {} shop/a,shop/b", 1, ""},
		{"nothing has changed", func() error {
			return errors.Join(claim(), refresh())
		}, "shop/login {} shop/a,shop/b", 0, ""},
		{"the source changes", func() error {
			put(t, server, dockerSecret("login", `{"auths":{}}`))
			return refresh()
		}, `shop/login {"auths":{}} shop/a,shop/b`, 1, ""},
		{"a missing source appears, and cannot be read", func() error {
			put(t, server, dockerSecret("later", "{}"))
			return refreshWithout("get later")
		}, `shop/login {"auths":{}} shop/a,shop/b`, 0, ""},
		{"it cannot be copied", func() error {
			return refreshWithout("patch later")
		}, `shop/login {"auths":{}} shop/a,shop/b`, 1, ""},
		{"it is copied", refresh, `shop/later {} shop/a,shop/b; shop/login {"auths":{}} shop/a,shop/b`, 1, "a b"},
		{"a job ends", func() error {
			ended := jobs[0].DeepCopy()
			ended.Status.CompletionTime = &metav1.Time{Time: at}
			put(t, server, ended)
			return errors.Join(r.secrets.Release(t.Context(), client.ObjectKeyFromObject(ended)), refresh())
		}, `shop/later {} shop/b; shop/login {"auths":{}} shop/b`, 2, ""},
		{"the other ends", func() error {
			last := client.ObjectKeyFromObject(jobs[1])
			return errors.Join(server.Delete(t.Context(), jobs[1]), r.secrets.Release(t.Context(), last))
		}, "", 2, ""},
		{"a job is deleted while no manager runs", func() error {
			return errors.Join(server.Put(jobs[0]), claim(), server.Delete(t.Context(), jobs[0]), refresh())
		}, "", 4, ""},
		{"a job is deleted before its claim", func() error {
			references, _, err := r.secrets.Claim(t.Context(), jobs[0])
			if len(references) > 0 {
				return fmt.Errorf("it lists %v", references)
			}
			return err
		}, "", 0, ""},
	} {
		sent, woken = nil, nil
		if err := step.happen(); err != nil {
			t.Fatalf("%s: %v", step.why, err)
		}
		writes := slices.DeleteFunc(sent, func(what string) bool { return strings.HasPrefix(what, "get ") })
		slices.Sort(woken)
		if got := copiesIn(t, server); got != step.copies || len(writes) != step.writes ||
			strings.Join(woken, " ") != step.woken {
			t.Errorf("%s: copies %s, writes %q, wakes %q", step.why, got, writes, woken)
		}
	}
}

// copiesIn are the copies of a server, each as its source, its configuration and its users.
func copiesIn(t *testing.T, server *apiserver.Server) string {
	t.Helper()
	var list corev1.SecretList
	if err := server.List(t.Context(), &list, client.InNamespace("nodes")); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range list.Items {
		all = append(all, fmt.Sprintf("%s %s %s", s.Annotations[v1beta1.ImagePullSecretSourceKey],
			s.Data[corev1.DockerConfigJsonKey], s.Annotations[v1beta1.ImagePullSecretReferencesKey]))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
