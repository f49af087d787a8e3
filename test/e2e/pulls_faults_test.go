//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// The runtime of one node crashes while all pull.
func (m *deployed) testPullRuntimeCrashes(t *testing.T) {
	p := m.newPulls(t)
	p.registry.set(func(r *registry) { r.hold = make(chan struct{}) })
	p.job(t, retry)
	p.pulling(t, 3)
	start := m.KillRuntime(t, 1)
	eventually(t, func(context.Context) error {
		if n := get(p.registry, func(r *registry) int { return r.atOnce }); n != 2 {
			return fmt.Errorf("%d layers are under way", n)
		}
		return nil
	})
	start()
	p.registry.release()
	p.ends(t, 3, 0)
	p.on(t, p.reference(), 1, 2, 3)
}

// The daemon of one node is killed while all pull, and another takes its place.
func (m *deployed) testPullDaemonKilled(t *testing.T) {
	p := m.newPulls(t)
	p.registry.set(func(r *registry) { r.hold = make(chan struct{}) })
	p.job(t, retry)
	p.pulling(t, 3)
	m.killDaemon(t, "node-2")
	eventually(t, func(context.Context) error { // the next one asks again
		if n := get(p.registry, func(r *registry) int { return r.asked[p.repository] }); n != 4 {
			return fmt.Errorf("the layer was asked for %d times", n)
		}
		return nil
	})
	p.pulling(t, 3)
	p.registry.release()
	p.ends(t, 3, 0)
	if asked, given := get(p.registry, func(r *registry) int { return r.asked[p.repository] }),
		get(p.registry, func(r *registry) int { return r.given[p.repository] }); asked != 4 || given != 3 {
		t.Errorf("the layer was asked for %d times, and given %d times, want 4 and 3", asked, given)
	}
}

// What cannot be pulled is refused, with its path.
func (m *deployed) testPullRefused(t *testing.T) {
	namespace := m.Namespace(t)
	for path, change := range map[string]func(*v1beta1.ImagePullJobSpec){
		"spec.image":       func(s *v1beta1.ImagePullJobSpec) { s.Image = "UPPER/case" },
		"spec.parallelism": func(s *v1beta1.ImagePullJobSpec) { s.Parallelism = ptr.To(intstr.FromString("50%")) },
		"spec.completionPolicy.type": func(s *v1beta1.ImagePullJobSpec) {
			s.CompletionPolicy.Type = "Sometimes"
		},
	} {
		job := &v1beta1.ImagePullJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}, Spec: v1beta1.ImagePullJobSpec{Image: "nginx"},
		}
		change(&job.Spec)
		if err := m.Client.Create(t.Context(), job); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// An unusable secret is skipped, with an event of the job. Where the registry asks for a login, the pull fails.
func (m *deployed) testPullWithUnusableSecret(t *testing.T) {
	p := m.newPulls(t)
	p.registry.set(func(r *registry) { r.user, r.password = "reader", "secret" })
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "unusable"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{
			corev1.DockerConfigJsonKey: bytes.ReplaceAll([]byte(`{"auths":{"HOST":{"auth":"no base64"}}}`), []byte("HOST"),
				[]byte(p.registry.host)),
		},
	}
	if err := p.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.job(t, func(s *v1beta1.ImagePullJobSpec) { s.PullSecrets = []string{"unusable"} })
	p.ends(t, 0, 3)
	p.everywhere(t, "authorization failed")
	eventually(t, func(ctx context.Context) error {
		return p.event(ctx, "job", corev1.EventTypeWarning, "SecretUnusable", "unusable")
	})
}
