package imagepull

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// Rollout takes a workload's pods to a revision.
type Rollout struct {
	// Namespace of the workload, and of the jobs.
	Namespace string
	// Owner is the reference to the workload that the jobs get.
	Owner metav1.OwnerReference
	// Revision is the one that pods go to.
	Revision *appsv1.ControllerRevision
	// From is the template that pods have, To the one that they get.
	From, To *corev1.PodTemplateSpec
	// Selector of the workload's pods.
	Selector *metav1.LabelSelector
	// Parallelism is how many nodes pull at once, 0 for none. Nil, or what is no number, is one.
	Parallelism *intstr.IntOrString
	// TimeoutSeconds is how long a pull may take. Nil is five minutes.
	TimeoutSeconds *int32
}

const (
	timeoutSeconds = 300
	backoffLimit   = 1
	keepSeconds    = 600
	// longestName is what the API server takes.
	longestName = 253
)

// PreDownload returns a job for each image that is new in a container, in the order of the containers. The jobs run on
// the nodes of the pods that are not yet of the revision, and end by themselves. Init containers do not count: an
// update does not start them again. The jobs have the labels and annotations of the template for the container runtime,
// unless these are longer than MaxSandboxBytes.
func PreDownload(r Rollout) []*v1beta1.ImagePullJob {
	before := map[string]string{}
	for i := range r.From.Spec.Containers {
		before[r.From.Spec.Containers[i].Name] = r.From.Spec.Containers[i].Image
	}
	pulled := map[string]bool{"": true} // a container without an image is the API server's to refuse
	var jobs []*v1beta1.ImagePullJob
	for i := range r.To.Spec.Containers {
		c := &r.To.Spec.Containers[i]
		if old, ok := before[c.Name]; ok && old == c.Image || pulled[c.Image] {
			continue
		}
		pulled[c.Image] = true
		jobs = append(jobs, r.job(c))
	}
	return jobs
}

func (r *Rollout) job(c *corev1.Container) *v1beta1.ImagePullJob {
	hash := r.Revision.Labels[kruise.RevisionHashLabelKey]
	labels := maps.Clone(r.To.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kruise.RevisionHashLabelKey] = hash
	job := &v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: nameOf(r.Revision.Name, c.Name),
			Labels: labels, OwnerReferences: []metav1.OwnerReference{r.Owner},
		},
		Spec: v1beta1.ImagePullJobSpec{Image: c.Image, ImagePullJobTemplate: v1beta1.ImagePullJobTemplate{
			PodSelector: &v1beta1.ImagePullJobPodSelector{LabelSelector: r.behind(hash)},
			Parallelism: r.parallelism(),
			PullPolicy: &v1beta1.PullPolicy{
				TimeoutSeconds: ptr.To(ptr.Deref(r.TimeoutSeconds, timeoutSeconds)), BackoffLimit: ptr.To[int32](backoffLimit),
			},
			CompletionPolicy: v1beta1.CompletionPolicy{
				Type: v1beta1.Always, TTLSecondsAfterFinished: ptr.To[int32](keepSeconds),
			},
			SandboxConfig: boundedSandbox(&v1beta1.SandboxConfig{Labels: labels, Annotations: r.To.Annotations}),
		}},
	}
	for _, secret := range r.To.Spec.ImagePullSecrets {
		job.Spec.PullSecrets = append(job.Spec.PullSecrets, secret.Name)
	}
	return job
}

// behind selects the pods that are not of the revision.
func (r *Rollout) behind(hash string) metav1.LabelSelector {
	selector := metav1.LabelSelector{}
	if r.Selector != nil {
		selector = *r.Selector.DeepCopy()
	}
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: kruise.PodRevisionLabelKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{r.Revision.Name, hash},
	})
	return selector
}

func (r *Rollout) parallelism() *intstr.IntOrString {
	if r.Parallelism == nil {
		return ptr.To(intstr.FromInt32(1))
	}
	n := int64(r.Parallelism.IntVal)
	if r.Parallelism.Type == intstr.String {
		var err error
		if n, err = strconv.ParseInt(r.Parallelism.StrVal, 10, 32); err != nil {
			n = 1
		}
	}
	if n < 0 {
		n = 1
	}
	return ptr.To(intstr.FromInt32(int32(n)))
}

// nameOf returns the name of a container's job. A name that is too long is cut, and ends with a hash of the whole name.
func nameOf(revision, container string) string {
	name := revision + "-" + container
	if len(name) <= longestName {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	sum := fmt.Sprintf("-%08x", h.Sum32())
	return name[:longestName-len(sum)] + sum
}
