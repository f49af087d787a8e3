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
)

func (b *bench) secret(name, data string) *corev1.Secret {
	b.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, Labels: map[string]string{"mine": "yes"}},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(data)},
	}
	if err := b.Client.Create(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	return s
}

// copied waits for the copies, as "source data users" each.
func (b *bench) copied(want ...string) []corev1.Secret {
	b.Helper()
	var list corev1.SecretList
	b.Until(func() error {
		if err := b.Client.List(b.Context(), &list, client.InNamespace(b.copies)); err != nil {
			return err
		}
		var got []string
		for _, s := range list.Items {
			got = append(got, fmt.Sprintf("%s %s %s",
				strings.TrimPrefix(s.Annotations[v1beta1.ImagePullSecretSourceKey], b.Namespace+"/"),
				s.Data[corev1.DockerConfigJsonKey],
				strings.ReplaceAll(s.Annotations[v1beta1.ImagePullSecretReferencesKey], b.Namespace+"/", "")))
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
	b.Until(func() error {
		var events corev1.EventList
		if err := b.Client.List(t.Context(), &events, client.InNamespace(b.Namespace)); err != nil {
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
	if err := b.Client.Patch(t.Context(), source, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	b.copied(`login {"auths":{"a":{}}} first,second`)
	if err := b.Client.Delete(t.Context(), &copies[0]); err != nil { // it is made again
		t.Fatal(err)
	}
	b.copied(`login {"auths":{"a":{}}} first,second`)
	b.secret("later", `{}`)
	b.copied(`later {} first`, `login {"auths":{"a":{}}} first,second`)
	b.Until(func() error {
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
	if err := b.Client.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	b.copied()
	b.gone(second)
	b.Until(func() error { return b.unheld(first) })
}
