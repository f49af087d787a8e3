//go:build envtest

package imagepulljob_test

import (
	"fmt"
	"slices"
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
	b.requests.Take()
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
	all := b.quiet()
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

func TestFailedNodes(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(4)
	b.nodes.tell(b.node(3)+" nginx:1", v1beta1.ImagePhaseFailed)
	b.nodes.tell(b.node(2)+" nginx:1", v1beta1.ImagePhaseFailed)
	job := b.create("web", "nginx:1", parallel(4))
	b.status(job, "4/0/2/2", "job has completed")
	if want := []string{b.node(2), b.node(3)}; !slices.Equal(job.Status.FailedNodes, want) {
		t.Errorf("failed nodes %q, want %q", job.Status.FailedNodes, want)
	}
}

// A job waits while it is paused, and while a node pulls; at its deadline all that have not succeeded have failed.
func TestPauseAndDeadline(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(3)
	b.nodes.tell("nginx:1", v1beta1.ImagePhasePulling)
	job := b.create("web", "nginx:1", parallel(0))
	b.status(job, "3/0/0/0", "job is running, progress 0.0%")
	b.change(job, parallel(2))
	b.status(job, "3/2/0/0", "job is running, progress 0.0%")
	b.nodes.tell(b.node(1)+" nginx:1", v1beta1.ImagePhaseSucceeded)
	b.status(job, "3/2/1/0", "job is running, progress 33.3%")
	b.change(job, func(j *v1beta1.ImagePullJob) {
		timeout, deadline := int32(1), int64(1)
		j.Spec.PullPolicy, j.Spec.CompletionPolicy.ActiveDeadlineSeconds = &v1beta1.PullPolicy{TimeoutSeconds: &timeout},
			&deadline
	})
	b.status(job, "3/0/1/2", "job exceeds activeDeadlineSeconds")
}

// A job that has ended goes after its time, one that never ends stays and pulls again what leaves a node.
func TestExpiryAndNever(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(2)
	always := b.create("always", "nginx:1", func(j *v1beta1.ImagePullJob) {
		s := int32(1)
		j.Spec.CompletionPolicy.TTLSecondsAfterFinished = &s
	})
	b.gone(always)
	job := b.create("never", "busybox:1", never)
	b.status(job, "2/0/2/0", "job is running, progress 100.0%")
	if job.Status.CompletionTime != nil {
		t.Error("it has an end")
	}
	image := b.nodeImage(1)
	before := image.DeepCopy()
	delete(image.Spec.Images, "busybox")
	removed := metav1.Now().Rfc3339Copy()
	if err := b.client.Patch(t.Context(), image, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	// The version is that of the first round where the node has dropped its status before the image comes back.
	b.until(func() error {
		tags := b.nodeImage(1).Spec.Images["busybox"].Tags
		if len(tags) != 1 || tags[0].Version != 1 && tags[0].CreatedAt.Before(&removed) {
			return fmt.Errorf("tags %+v, want a new round", tags)
		}
		return nil
	})
	b.status(job, "2/0/2/0", "job is running, progress 100.0%")
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
	if err := b.client.Delete(t.Context(), b.nodeImage(1)); err != nil {
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
	if err := b.client.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	b.status(pods, "1/0/1/0", "job is running, progress 100.0%")
}

// Two jobs for one image share what the nodes have; a digest is an image too.
func TestSharedImageAndDigest(t *testing.T) {
	b := start(t, imagepulljob.Options{})
	b.have(2)
	first := b.create("first", "nginx:1", parallel(2))
	b.status(first, "2/0/2/0", "job has completed")
	second := b.create("second", "docker.io/library/nginx:1")
	b.status(second, "2/0/2/0", "job has completed")
	tag := b.nodeImage(1).Spec.Images["nginx"].Tags[0]
	if tag.Version != 0 || len(tag.OwnerReferences) != 2 {
		t.Errorf("tag %+v: what is there need not be pulled again", tag)
	}
	const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	third := b.create("third", "team/app@"+digest)
	b.status(third, "2/0/2/0", "job has completed")
	if tags := b.nodeImage(1).Spec.Images["team/app"].Tags; len(tags) != 1 || tags[0].Tag != digest {
		t.Errorf("tags %+v", tags)
	}
}

func (b *bench) label(n int, key, value string) {
	b.Helper()
	image := b.nodeImage(n)
	before := image.DeepCopy()
	image.Labels[key] = value
	if err := b.client.Patch(b.Context(), image, client.MergeFrom(before)); err != nil {
		b.Fatal(err)
	}
}

// pod makes a pod of web, on a node if one is given.
func (b *bench) pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
	}
	for _, c := range change {
		c(pod)
	}
	if err := b.client.Create(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
	return pod
}
