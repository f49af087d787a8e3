package imagepull

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// The interests of jobs that pick nodes by their labels, that pick all, and that have secrets to be copied.
const (
	InAllNodes = "nodes"
	InLabels   = "labels"
	InSecrets  = "secrets"
)

// InNode is the interest in a node by its name.
func InNode(name string) string { return "node:" + name }

// InPods is the interest in the pods of a namespace.
func InPods(namespace string) string { return "pods:" + namespace }

// InSecret is the interest in a secret.
func InSecret(namespace, name string) string { return "secret:" + namespace + "/" + name }

// Interests are what a job depends on, as keys of an index: whatever happens then finds the jobs that depend on it, and
// no others. A job that has ended, is being deleted, or cannot run has none. Its secrets are copied unless they are in
// the namespace of the copies already.
func Interests(job *v1beta1.ImagePullJob, copies string) []string {
	if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		return nil
	}
	if _, err := Parse(job.Spec.Image); err != nil || len(job.Spec.PullSecrets) > MaxPullSecrets ||
		SandboxBytes(job.Spec.SandboxConfig) > MaxSandboxBytes {
		return nil
	}
	var keys []string
	switch s := job.Spec.Selector; {
	case job.Spec.PodSelector != nil:
		keys = append(keys, InPods(job.Namespace))
	case s == nil:
		keys = append(keys, InAllNodes)
	case s.Names != nil:
		for _, name := range s.Names {
			keys = append(keys, InNode(name))
		}
	default:
		keys = append(keys, InLabels)
	}
	if job.Namespace == copies || len(job.Spec.PullSecrets) == 0 {
		return keys
	}
	for _, name := range PullSecretsOf(job) {
		keys = append(keys, InSecret(job.Namespace, name))
	}
	return append(keys, InSecrets)
}

// Counts reports whether a pod stands for its node: it has one, and has neither ended nor is being deleted. No pod is
// nil.
func Counts(p *corev1.Pod) bool { return p != nil && p.Spec.NodeName != "" && active(p) }

// Rule is the label selector of a job, compiled for questions about nodes and pods. It ignores names of nodes. It may
// be used concurrently.
type Rule struct{ selector labels.Selector }

// NewRule returns the rule of a job: that of its podSelector, else that of its selector. A job without both selects
// everything. A selector that cannot be read is an error.
func NewRule(job *v1beta1.ImagePullJob) (*Rule, error) {
	selector := &metav1.LabelSelector{}
	switch {
	case job.Spec.PodSelector != nil:
		selector = &job.Spec.PodSelector.LabelSelector
	case job.Spec.Selector != nil:
		selector = &job.Spec.Selector.LabelSelector
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	return &Rule{compiled}, nil
}

// Matches reports whether the rule selects the labels of a node or a pod.
func (r *Rule) Matches(set map[string]string) bool { return r.selector.Matches(labels.Set(set)) }

// SelectsAnother reports whether a job with a podSelector selects other nodes after a change of a pod. before is nil
// for a pod that was created, after for one that was deleted.
func (r *Rule) SelectsAnother(before, after *corev1.Pod) bool {
	picked, picks := Counts(before) && r.Matches(before.Labels), Counts(after) && r.Matches(after.Labels)
	return picked != picks || picks && before.Spec.NodeName != after.Spec.NodeName
}
