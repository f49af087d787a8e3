//go:build envtest

package imagepulljob_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/test/requests"
)

func (b *bench) secret(name, data string) *corev1.Secret {
	b.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"mine": "yes"}},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(data)},
	}
	if err := b.client.Create(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	return s
}

// copied waits for the copies, as "source data users" each.
func (b *bench) copied(want ...string) []corev1.Secret {
	b.Helper()
	var list corev1.SecretList
	b.until(func() error {
		if err := b.client.List(b.Context(), &list, client.InNamespace(b.copies)); err != nil {
			return err
		}
		var got []string
		for _, s := range list.Items {
			got = append(got, fmt.Sprintf("%s %s %s",
				strings.TrimPrefix(s.Annotations[v1beta1.ImagePullSecretSourceKey], b.namespace+"/"),
				s.Data[corev1.DockerConfigJsonKey],
				strings.ReplaceAll(s.Annotations[v1beta1.ImagePullSecretReferencesKey], b.namespace+"/", "")))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("copies %q, want %q", got, want)
		}
		return nil
	})
	return list.Items
}

// A secret has one copy, however many jobs name it; it follows its source, and goes with the last job that uses it.
func TestSecrets(t *testing.T) {
	b := start(t, imagepulljob.Options{SecretPeriod: 100 * time.Millisecond})
	b.have(2)
	source := b.secret("login", `{"auths":{}}`)
	b.secret("bad", `{"auths":{"a":{"auth":"no base64"}}}`)
	b.nodes.tell("nginx:1", v1beta1.ImagePhasePulling)
	first := b.create("first", "nginx:1", parallel(2), secrets("login", "later", "bad"))
	second := b.create("second", "nginx:1", parallel(2), secrets("login"), never)
	copies := b.copied(`login {"auths":{}} first,second`)
	if c := copies[0]; len(c.Labels) > 0 || c.Type != source.Type ||
		c.Annotations[v1beta1.ImagePullSecretModeKey] != "batch" {
		t.Errorf("copy %+v", c)
	}
	b.status(first, "2/2/0/0", "job is running, progress 0.0%")
	b.status(second, "2/2/0/0", "job is running, progress 0.0%")
	if got := b.nodeImage(1).Spec.Images["nginx"].PullSecrets; len(got) != 1 || got[0].Name != copies[0].Name ||
		got[0].Namespace != b.copies {
		t.Errorf("the NodeImage has %+v", got)
	}
	if len(first.Finalizers) > 0 {
		t.Errorf("finalizers %q: the copies are deleted without one", first.Finalizers)
	}
	b.until(func() error {
		var events corev1.EventList
		if err := b.client.List(t.Context(), &events, client.InNamespace(b.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == imagepull.NoteBadSecret && e.InvolvedObject.Name == first.Name &&
				strings.Contains(e.Message, "bad") {
				return nil
			}
		}
		return fmt.Errorf("no event of the unusable secret: %+v", events.Items)
	})

	before := source.DeepCopy()
	source.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"a":{}}}`)
	if err := b.client.Patch(t.Context(), source, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	b.copied(`login {"auths":{"a":{}}} first,second`)
	b.secret("later", `{}`)
	b.copied(`later {} first`, `login {"auths":{"a":{}}} first,second`)
	b.until(func() error {
		if got := b.nodeImage(1).Spec.Images["nginx"].PullSecrets; len(got) != 2 {
			return fmt.Errorf("the NodeImage has %+v", got)
		}
		return nil
	})
	if tag := b.nodeImage(1).Spec.Images["nginx"].Tags[0]; tag.Version != 0 {
		t.Errorf("tag %+v: a secret more is no new round", tag)
	}

	b.nodes.tell("nginx:1", v1beta1.ImagePhaseSucceeded)
	b.status(first, "2/0/2/0", "job has completed")
	b.copied(`login {"auths":{"a":{}}} second`)
	if err := b.client.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	b.copied()
	b.gone(second)
	b.until(func() error { return b.unheld(first) })
}

// Copies that a client deletes are made again; a copy's cost is counted.
func TestSecretWrites(t *testing.T) {
	b := start(t, imagepulljob.Options{SecretPeriod: time.Hour})
	b.have(8)
	b.secret("login", `{}`)
	jobs := make([]*v1beta1.ImagePullJob, 4)
	for i := range jobs {
		jobs[i] = b.create(fmt.Sprintf("job-%d", i), fmt.Sprintf("nginx:%d", i), secrets("login"), never)
	}
	for _, job := range jobs {
		b.status(job, "8/0/8/0", "job is running, progress 100.0%")
	}
	copies := b.copied(`login {} job-0,job-1,job-2,job-3`)
	all := b.quiet()
	if read := requests.About(all, "GET", "secrets/"); len(read) != 1 {
		t.Errorf("%d reads of one secret that four jobs name: %q", len(read), read)
	}
	if wrote := requests.About(all, "namespaces/"+b.copies+"/secrets"); len(wrote) < 1 || len(wrote) > 4 {
		t.Errorf("%d writes of a copy, want at most one a job: %q", len(wrote), wrote)
	}
	if err := b.client.Delete(t.Context(), &copies[0]); err != nil {
		t.Fatal(err)
	}
	b.copied(`login {} job-0,job-1,job-2,job-3`)
}

// A namespace that does not exist takes no copies: the jobs that need some say so, others run, and all can be deleted.
func TestNoNamespaceForCopies(t *testing.T) {
	b := start(t, imagepulljob.Options{SecretNamespace: "nowhere"})
	b.have(1)
	b.secret("login", `{}`)
	job := b.create("with", "nginx:1", secrets("login"))
	b.status(job, "1/0/0/0", "job is running, progress 0.0%, pull secrets cannot be copied to namespace nowhere")
	missing := b.create("missing", "nginx:2", secrets("no-such"))
	b.status(missing, "1/0/1/0", "job has completed")
	if err := b.client.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	b.gone(job)
}

// A job in the namespace of the copies names its secrets as they are.
func TestJobAmongCopies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run(b.config, b.nodes.add)
	b.copies = b.namespace
	b.reconcile(imagepulljob.Options{}, plain)
	b.have(1)
	b.seen(1) // a busy machine may take longer than the job waits for its nodes
	job := b.create("web", "nginx:1", secrets("login"))
	b.status(job, "1/0/1/0", "job has completed")
	if got := b.nodeImage(1).Spec.Images["nginx"].PullSecrets; len(got) != 1 || got[0].Name != "login" ||
		got[0].Mode != "" {
		t.Errorf("the NodeImage has %+v", got)
	}
	if len(job.Finalizers) > 0 {
		t.Errorf("finalizers %q: there is nothing to release", job.Finalizers)
	}
}
