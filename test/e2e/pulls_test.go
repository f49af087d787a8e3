//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// secrets is where the daemon reads those of pulls.
const secrets = "kruise-daemon-config"

// pulls are those of one test.
type pulls struct {
	*deployed
	namespace string
	registry  *registry
	// pushed is the test's image, which no node has, and repository where it is.
	pushed     image.Image
	repository string
}

func (m *deployed) newPulls(t *testing.T) *pulls {
	t.Helper()
	p := &pulls{deployed: m, namespace: m.Namespace(t), registry: newRegistry(t, m.Cluster)}
	p.repository = "pulls/" + p.namespace
	p.pushed = p.push(t, p.repository)
	return p
}

// push makes an image of one layer that no node has.
func (p *pulls) push(t *testing.T, repository string) image.Image {
	t.Helper()
	content := make([]byte, 4*large)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	return p.Push(t, image.Spec{
		Name: repository + ":1", Scratch: true, Files: map[string][]byte{"data": content}, Entrypoint: []string{"/data"},
	})
}

// reference is how nodes ask the test's registry for the image.
func (p *pulls) reference() string { return p.registry.host + "/" + p.pushed.Name }

// job asks all nodes at once, and gives up at the first failure, unless told otherwise.
func (p *pulls) job(t *testing.T, change func(*v1beta1.ImagePullJobSpec)) {
	t.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "job"}}
	job.Spec.Image = p.reference()
	job.Spec.Parallelism = ptr.To(intstr.FromInt32(3))
	job.Spec.CompletionPolicy.Type = v1beta1.Always
	job.Spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: ptr.To(int32(0)), TimeoutSeconds: ptr.To(int32(60))}
	if change != nil {
		change(&job.Spec)
	}
	if err := p.Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
}

// retry gives it some attempts.
func retry(s *v1beta1.ImagePullJobSpec) { s.PullPolicy.BackoffLimit = ptr.To(int32(8)) }

func (p *pulls) status(ctx context.Context) (v1beta1.ImagePullJobStatus, error) {
	job := &v1beta1.ImagePullJob{}
	err := p.Client.Get(ctx, types.NamespacedName{Namespace: p.namespace, Name: "job"}, job)
	return job.Status, err
}

// ends waits until the job is over, on so many nodes with and without success.
func (p *pulls) ends(t *testing.T, succeeded, failed int32) v1beta1.ImagePullJobStatus {
	t.Helper()
	var now v1beta1.ImagePullJobStatus
	eventually(t, func(ctx context.Context) (err error) {
		if now, err = p.status(ctx); err == nil && now.CompletionTime == nil {
			err = fmt.Errorf("%+v\n%s", now, p.told(ctx))
		}
		return err
	})
	if now.Succeeded != succeeded || now.Failed != failed || now.Message != "job has completed" ||
		len(now.FailedNodes) != int(failed) {
		t.Errorf("it ended with %+v, want %d nodes with success and %d without\n%s",
			now, succeeded, failed, p.told(t.Context()))
	}
	return now
}

// tags are what NodeImages say of the image, by node.
func (p *pulls) tags(ctx context.Context) (map[string]v1beta1.ImageTagStatus, error) {
	var list v1beta1.NodeImageList
	if err := p.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	name, tag, err := split(p.reference())
	if err != nil {
		return nil, err
	}
	tags := map[string]v1beta1.ImageTagStatus{}
	for i := range list.Items {
		for _, status := range list.Items[i].Status.ImageStatuses[name].Tags {
			if status.Tag == tag {
				tags[list.Items[i].Name] = status
			}
		}
	}
	return tags, nil
}

func split(reference string) (name, tag string, err error) {
	r, err := imagepull.Parse(reference)
	return r.Name, r.Tag, err
}

func (p *pulls) told(ctx context.Context) string {
	tags, err := p.tags(ctx)
	text, _ := json.MarshalIndent(tags, "", " ")
	return fmt.Sprintf("%s %v", text, err)
}

// pulling waits until so many nodes wait for the rest of a layer.
func (p *pulls) pulling(t *testing.T, nodes int) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if n := get(p.registry, func(r *registry) int { return r.atOnce }); n != nodes {
			return fmt.Errorf("%d layers are under way, want %d\n%s", n, nodes, p.told(ctx))
		}
		tags, err := p.tags(ctx)
		if err != nil {
			return err
		}
		for node, status := range tags {
			if status.Phase != v1beta1.ImagePhasePulling {
				return fmt.Errorf("%s: %+v", node, status)
			}
		}
		return nil
	})
}

// on asks the runtimes of all nodes whether they have the image.
func (p *pulls) on(t *testing.T, reference string, want ...int) {
	t.Helper()
	for node := 1; node <= 3; node++ {
		runtime, err := cri.Open(t.Context(), p.RuntimeSocket(t, node), cri.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = runtime.Image(t.Context(), reference)
		_ = runtime.Close()
		if err != nil && !errors.Is(err, cri.ErrNotFound) {
			t.Fatal(err)
		}
		if has := err == nil; has != slices.Contains(want, node) {
			t.Errorf("node %d has %s: %v, want it on %v", node, reference, has, want)
		}
	}
}

// login makes a secret to pull with.
func (p *pulls) login(t *testing.T, name, user, password string) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"auths": map[string]any{p.registry.host: map[string]string{
		"username": user, "password": password,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: config},
	}
	if err := p.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// copies counts what is left of the test's secrets where the daemon reads them.
func (p *pulls) copies(ctx context.Context) (int, error) {
	var list corev1.SecretList
	if err := p.Client.List(ctx, &list, client.InNamespace(secrets)); err != nil {
		return 0, err
	}
	n := 0
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Annotations["imagepulljobs.kruise.io/source-key"], p.namespace+"/") {
			n++
		}
	}
	return n, nil
}

func (m *deployed) testPullCutOff(t *testing.T) {
	p := m.newPulls(t)
	p.registry.set(func(r *registry) { r.drops = 4 })
	p.job(t, retry)
	p.ends(t, 3, 0)
	p.on(t, p.reference(), 1, 2, 3)
	if left := get(p.registry, func(r *registry) int { return r.drops }); left != 0 {
		t.Errorf("%d layers were not cut off", left)
	}
}

// testPull pulls an image that asks for a login. The copies of the secret for the daemons are deleted at the end.
func (m *deployed) testPull(t *testing.T) {
	p := m.newPulls(t)
	p.registry.set(func(r *registry) { r.user, r.password = "somebody", "secret" })
	p.login(t, "right", "somebody", "secret")
	p.job(t, func(s *v1beta1.ImagePullJobSpec) { s.PullSecrets = []string{"right"} })
	p.ends(t, 3, 0)
	p.on(t, p.reference(), 1, 2, 3)
	tags, err := p.tags(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for node, status := range tags {
		if !strings.HasSuffix(status.ImageID, p.pushed.ID) && !strings.HasSuffix(status.ImageID, p.pushed.Digest) ||
			status.Progress != 100 {
			t.Errorf("%s: %+v, want image %s", node, status, p.pushed.ID)
		}
	}
	if n := get(p.registry, func(r *registry) int { return r.asked[p.repository] }); n != 3 {
		t.Errorf("the layer was asked for %d times", n)
	}
	eventually(t, func(ctx context.Context) error {
		n, err := p.copies(ctx)
		if err == nil && n != 0 {
			err = fmt.Errorf("%d copies of its secret are left", n)
		}
		return err
	})
}

// A job that is deleted stops what it began.
func (m *deployed) testPullCancelled(t *testing.T) {
	p := m.newPulls(t)
	p.registry.set(func(r *registry) { r.hold = make(chan struct{}) })
	p.job(t, retry)
	p.pulling(t, 3)
	if err := p.Client.Delete(t.Context(), &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: "job",
	}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if _, err := p.status(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the job is still there: %w", err)
		}
		if tags, err := p.tags(ctx); err != nil || len(tags) > 0 {
			return fmt.Errorf("%v, %w", tags, err)
		}
		if n := get(p.registry, func(r *registry) int { return r.atOnce }); n > 0 {
			return fmt.Errorf("%d layers are still under way", n)
		}
		return nil
	})
	p.registry.release()
	p.on(t, p.reference())
}
