//go:build envtest

package imagepulljob_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob"
	"github.com/kruisekit/kruisekit/test/requests"
)

// A job without defaults, as without a webhook: no more nodes pull at once than it says, each is one write, the status
// is written when it changes, and nothing is read past the cache.
func TestPull(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(6)
	b.Asked()
	job := b.create("web", "nginx:1", parallel(2))
	b.status(job, "6/0/6/0", "job has completed")
	if job.Status.StartTime == nil || job.Status.CompletionTime == nil {
		t.Errorf("status %+v: it does not say when", job.Status)
	}
	if len(job.Finalizers) > 0 {
		t.Errorf("finalizers %q: there is nothing to release", job.Finalizers)
	}
	if b.nodes.most > 2 {
		t.Errorf("%d nodes pulled at once", b.nodes.most)
	}
	b.Still()
	all := b.Asked()
	if told := len(requests.About(all, "PATCH", "nodeimages/")); told != 6 {
		t.Errorf("%d writes to NodeImages, want one a node", told)
	}
	if wrote := len(requests.About(all, "imagepulljobs/web/status")); wrote > 7 {
		t.Errorf("%d writes of the status, want one as it begins, and at most one a node", wrote)
	}
	if read := requests.About(all, "GET"); len(read) > 0 {
		t.Errorf("read past the cache: %q", read)
	}
	tag := b.nodeImage(1).Spec.Images["nginx"].Tags[0]
	if tag.Tag != "1" || tag.Version != 0 || len(tag.OwnerReferences) != 1 || tag.OwnerReferences[0].UID != job.UID ||
		tag.CreatedAt == nil {
		t.Errorf("tag %+v", tag)
	}
}

// Nodes are chosen by name, by label, or by the pods on them; they come and go while a job runs.
func TestSelection(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(3)
	named := b.create("named", "a:1", never, parallel(9), func(j *v1beta1.ImagePullJob) {
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{b.node(2), b.node(4), "nowhere"}}
	})
	without := b.create("without", "b:1", never, parallel(9), func(j *v1beta1.ImagePullJob) {
		j.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key: "gpu", Operator: metav1.LabelSelectorOpDoesNotExist,
		}}
	})
	pods := b.create("pods", "c:1", never, parallel(9), func(j *v1beta1.ImagePullJob) {
		j.Spec.Selector = nil
		j.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		}
	})
	b.status(named, "1/0/1/0", "job is running, progress 100.0%")
	b.status(without, "3/0/3/0", "job is running, progress 100.0%")
	b.status(pods, "0/0/0/0", "job is running, no progress")

	b.haveOne(4)
	b.status(named, "2/0/2/0", "job is running, progress 100.0%")
	b.status(without, "4/0/4/0", "job is running, progress 100.0%")
	b.label(4, "gpu", "yes")
	b.status(without, "3/0/3/0", "job is running, progress 100.0%")
	if err := b.Client.Delete(t.Context(), b.nodeImage(1)); err != nil {
		t.Fatal(err)
	}
	b.status(without, "2/0/2/0", "job is running, progress 100.0%")

	pod := b.pod("web-1", b.node(2))
	b.pod("web-2", "")
	b.pod("web-3", b.node(9))
	b.status(pods, "1/0/1/0", "job is running, progress 100.0%")
	b.haveOne(9)
	b.status(pods, "2/0/2/0", "job is running, progress 100.0%")
	before := pod.DeepCopy()
	pod.Labels["app"] = "other"
	if err := b.Client.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	b.status(pods, "1/0/1/0", "job is running, progress 100.0%")
}

func (b *bench) label(n int, key, value string) {
	b.Helper()
	image := b.nodeImage(n)
	before := image.DeepCopy()
	image.Labels[key] = value
	if err := b.Client.Patch(b.Context(), image, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// pod makes a pod of web, on a node if one is given.
func (b *bench) pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
	}
	for _, c := range change {
		c(pod)
	}
	if err := b.Client.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	return pod
}
