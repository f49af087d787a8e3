package broadcastjob_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/broadcastjob"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// model runs the reconciler of BroadcastJobs, and plays the scheduler, the nodes and the garbage collector.
type model struct {
	*testing.T
	*objects.Model

	options broadcastjob.Options
	// ends are how the pods of a node end: "failed", "restarts", "retries" a few times and succeeds, "runs" without end,
	// or "waits" for the scheduler. The pods of other nodes succeed.
	ends map[string]string
	// runs counts the pods that ended on a node.
	runs map[string]int
}

func newModel(t *testing.T, nodes string, o broadcastjob.Options) *model {
	t.Helper()
	m := &model{
		T:       t,
		Model:   objects.NewModel(t, &v1beta1.BroadcastJobList{}, v1beta1.AddToScheme),
		options: o,
		ends:    map[string]string{},
		runs:    map[string]int{},
	}
	if err := owned.Index(t.Context(), m.Server, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(nodes) {
		m.addNode(name)
	}
	m.restart(m.Server)
	return m
}

// restart starts another reconciler in the place of the one before, with a client of the server.
func (m *model) restart(c client.Client) {
	m.Helper()
	o := m.options
	o.Now, o.Recorder, o.Live = m.Now, m.Server, m.Live
	r, err := broadcastjob.New(c, o)
	if err != nil {
		m.Fatal(err)
	}
	m.Reconciler = r
}

func (m *model) addNode(name string) {
	m.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("4"),
	}
	m.Put(node)
}

// node changes a node.
func (m *model) node(name string, change func(*corev1.Node)) {
	m.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Look(node)
	change(node)
	m.Put(node)
}

func cordon(n *corev1.Node)   { n.Spec.Unschedulable = true }
func uncordon(n *corev1.Node) { n.Spec.Unschedulable = false }

// create creates a job with nothing but what is required, and what changes add.
func (m *model) create(changes ...func(*v1beta1.BroadcastJob)) *v1beta1.BroadcastJob {
	m.Helper()
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "check"}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "check:1"}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, change := range changes {
		change(job)
	}
	if err := m.Server.Create(m.Context(), job); err != nil {
		m.Fatal(err)
	}
	return job
}

// change patches the job.
func (m *model) change(job *v1beta1.BroadcastJob, change func(*v1beta1.BroadcastJob)) {
	m.Helper()
	objects.Change(m.Model, job, change)
}

func parallelism(v string) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.Parallelism = ptr.To(intstr.Parse(v)) }
}

func policy(p v1beta1.FailurePolicyType) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.FailurePolicy.Type = p }
}

func deadline(seconds int64) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = &seconds }
}

func ttl(seconds int32) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.TTLSecondsAfterFinished = &seconds }
}

func paused(p bool) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.Paused = p }
}

func restarting(j *v1beta1.BroadcastJob) {
	j.Spec.Template.Spec.RestartPolicy, j.Spec.FailurePolicy.RestartLimit = corev1.RestartPolicyOnFailure, 2
}

// pods returns the pods of all jobs, by node.
func (m *model) pods() []*corev1.Pod {
	m.Helper()
	pods := m.Pods()
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return strings.Compare(eligible.NodeOf(a), eligible.NodeOf(b))
	})
	return pods
}

func (m *model) nodes() []*corev1.Node {
	m.Helper()
	var list corev1.NodeList
	if err := m.Server.List(context.Background(), &list); err != nil {
		m.Fatal(err)
	}
	nodes := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return nodes
}

// run is one step of the scheduler and of the nodes: a pod is bound, runs, ends, or goes. Pods of nodes that do not
// exist go.
func (m *model) run() {
	m.Helper()
	nodes := map[string]*corev1.Node{}
	for _, node := range m.nodes() {
		nodes[node.Name] = node
	}
	for _, pod := range m.pods() {
		name := eligible.NodeOf(pod)
		node := nodes[name]
		switch {
		case pod.DeletionTimestamp != nil, pod.Spec.NodeName != "" && node == nil:
			if err := m.Server.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); err != nil {
				m.Fatal(err)
			}
			continue
		case pod.Spec.NodeName == "" && node != nil && !node.Spec.Unschedulable && m.ends[name] != "waits":
			pod.Spec.NodeName = name
		case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
			continue
		case pod.Status.Phase != corev1.PodRunning:
			pod.Status.Phase = corev1.PodRunning
		default:
			if !m.end(pod, name) {
				continue
			}
		}
		m.Put(pod)
	}
}

// end has a pod that runs end, and reports whether it has changed.
func (m *model) end(pod *corev1.Pod, node string) bool {
	switch m.ends[node] {
	case "runs":
		return false
	case "restarts", "retries":
		restarts := int32(1)
		if len(pod.Status.ContainerStatuses) > 0 {
			restarts += pod.Status.ContainerStatuses[0].RestartCount
		}
		if m.ends[node] == "retries" && restarts > 5 {
			pod.Status.Phase = corev1.PodSucceeded
			m.runs[node]++
			return true
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: restarts}}
		return restarts < 10 // a node waits longer each time
	case "failed":
		pod.Status.Phase = corev1.PodFailed
	default:
		pod.Status.Phase = corev1.PodSucceeded
		m.runs[node]++
	}
	return true
}

// picture is the job on each node.
func (m *model) picture() string {
	m.Helper()
	byNode := map[string]string{}
	for _, pod := range m.pods() {
		state := string(pod.Status.Phase)
		switch {
		case pod.DeletionTimestamp != nil:
			state = "terminating"
		case pod.Spec.NodeName == "":
			state = "created"
		case pod.Status.Phase == corev1.PodPending:
			state = "bound"
		case len(pod.Status.ContainerStatuses) > 0:
			state = fmt.Sprintf("restarted %d", pod.Status.ContainerStatuses[0].RestartCount)
		}
		name := eligible.NodeOf(pod)
		byNode[name] = strings.TrimPrefix(byNode[name]+"+"+strings.ToLower(state), "+")
	}
	var all []string
	for _, node := range m.nodes() {
		state := byNode[node.Name]
		if state == "" {
			state = "-"
		}
		if node.Spec.Unschedulable {
			state += " (cordoned)"
		}
		all = append(all, node.Name+": "+state)
	}
	return strings.Join(all, ", ")
}

func counters(job *v1beta1.BroadcastJob) string {
	s := &job.Status
	return fmt.Sprintf("%s: desired %d, active %d, succeeded %d, failed %d",
		s.Phase, s.Desired, s.Active, s.Succeeded, s.Failed)
}

// turn is a pass, and a step of the nodes.
func (m *model) turn() {
	m.Helper()
	m.Reconcile()
	m.run()
	m.Advance(time.Second)
}
