package imagepulljob

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// jobField is the name of the index of jobs under way. Its keys say what a job looks at, so that whatever happens finds the
// jobs that it is about, and no others.
const jobField = "kruisekit.dev/pulls"

// The keys of jobs that pick nodes by their labels, that pick all, and that have secrets to be copied.
const (
	keyAllNodes = "nodes"
	keyLabels   = "labels"
	keySecrets  = "secrets"
)

func keyOfImage(ref imagepull.Reference) string { return "image:" + ref.String() }
func keyOfNode(name string) string              { return "node:" + name }
func keyOfPods(namespace string) string         { return "pods:" + namespace }
func keyOfSecret(namespaceAndName string) string {
	return "secret:" + namespaceAndName
}

// keysOf a job, none of one that has ended, is being deleted, or cannot run.
func (r *Reconciler) keysOf(o client.Object) []string {
	job := decode(o)
	if job == nil || job.DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		return nil
	}
	ref, err := imagepull.Parse(job.Spec.Image)
	if err != nil {
		return nil
	}
	keys := []string{keyOfImage(ref)}
	switch s := job.Spec.Selector; {
	case job.Spec.PodSelector != nil:
		keys = append(keys, keyOfPods(job.Namespace))
	case s == nil:
		keys = append(keys, keyAllNodes)
	case s.Names != nil:
		for _, name := range s.Names {
			keys = append(keys, keyOfNode(name))
		}
	default:
		keys = append(keys, keyLabels)
	}
	if job.Namespace == r.options.SecretNamespace || len(job.Spec.PullSecrets) == 0 {
		return keys
	}
	for _, name := range job.Spec.PullSecrets {
		keys = append(keys, keyOfSecret(job.Namespace+"/"+name))
	}
	return append(keys, keySecrets)
}

// decode gives the job that an untyped object is; nil for what no job can be.
func decode(o client.Object) *v1beta1.ImagePullJob {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	job, malformed, err := stored.Decode[v1beta1.ImagePullJob](raw)
	if malformed != nil || err != nil {
		return nil
	}
	return job
}

// under are the jobs with a key. They are not the cache's.
func (r *Reconciler) under(ctx context.Context, key string) ([]*v1beta1.ImagePullJob, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind + "List"))
	if err := r.objects.List(ctx, list, client.MatchingFields{jobField: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ImagePullJobs by %s: %w", key, err)
	}
	var jobs []*v1beta1.ImagePullJob
	for i := range list.Items {
		if job := decode(&list.Items[i]); job != nil {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// matches says whether a selector picks labels. One that cannot be read picks nothing.
func matches(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}
