//go:build envtest

package imagepulljob_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
)

// A job that cannot run says why, once, and is left; the jobs beside it never notice, and mended it runs.
func TestInvalid(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(1)
	for name, test := range map[string]struct{ spec, says string }{
		"image":  {`"image":"Not An Image","completionPolicy":{}`, "spec.image"},
		"number": {`"image":"nginx:1","completionPolicy":{},"parallelism":3000000000`, "parallelism"},
	} {
		text := fmt.Sprintf(
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"ImagePullJob","metadata":{"namespace":%q,"name":%q},"spec":{%s}}`,
			b.Namespace, name, test.spec)
		job := &unstructured.Unstructured{}
		if err := job.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := b.Client.Create(t.Context(), job); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b.Until(func() error {
			if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
				return err
			}
			if got := fmt.Sprint(job.Object["status"]); !strings.Contains(got, "job cannot run: ") ||
				!strings.Contains(got, test.says) {
				return fmt.Errorf("%s: status %s", name, got)
			}
			return nil
		})
	}
	b.Still()
	good := b.create("good", "nginx:1")
	b.status(good, "1/0/1/0", "job has completed")
	bad := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "image"}}
	b.change(bad, func(j *v1beta1.ImagePullJob) {
		j.Spec.Image = "busybox"
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{b.node(1)}}
	})
	b.status(bad, "1/0/1/0", "job has completed")
	b.Until(func() error {
		var events corev1.EventList
		if err := b.Client.List(t.Context(), &events, client.InNamespace(b.Namespace)); err != nil {
			return err
		}
		told := map[string]int32{}
		for _, e := range events.Items {
			if e.Reason == "InvalidSpec" {
				told[e.InvolvedObject.Name] += max(e.Count, 1)
			}
		}
		if len(told) != 2 || told["image"] != 1 || told["number"] != 1 {
			return fmt.Errorf("events %v, want one for each of two", told)
		}
		return nil
	})
}
