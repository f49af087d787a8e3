package operate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/operate"
)

// podsOf returns pods called a, b, ...: + is a ready one, - one that is not.
func podsOf(ready string) []*corev1.Pod {
	var all []*corev1.Pod
	for i, mark := range ready {
		status := map[rune]corev1.ConditionStatus{'+': corev1.ConditionTrue, '-': corev1.ConditionFalse}[mark]
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i)), Namespace: "default"}}
		p.Labels = map[string]string{"app": "web"}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		all = append(all, p)
	}
	return all
}

// request returns a request in a phase.
func request(phase v1beta1.ContainerRecreateRequestPhase) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{}
	if r.Status.Phase = phase; phase == v1beta1.ContainerRecreateRequestCompleted {
		r.Status.CompletionTime = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return r
}

func TestNext(t *testing.T) {
	type requests = map[string]*v1beta1.ContainerRecreateRequest
	running := request(v1beta1.ContainerRecreateRequestRecreating)
	completed := request(v1beta1.ContainerRecreateRequestCompleted)
	full := &policyv1beta1.PodUnavailableBudget{}
	full.Name, full.Namespace, full.Generation = "b", "default", 1
	full.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	full.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	full.Status = policyv1beta1.PodUnavailableBudgetStatus{ObservedGeneration: 1, DesiredAvailable: 2, TotalReplicas: 3}
	room := full.DeepCopy()
	room.Status.UnavailableAllowed, room.Status.CurrentAvailable = 1, 3
	counted := full.DeepCopy()
	counted.Status.UnavailableAllowed, counted.Status.CurrentAvailable, counted.Status.DesiredAvailable = 1, 2, 1
	for name, row := range map[string]struct {
		pods     string
		requests requests
		limit    string
		budget   *policyv1beta1.PodUnavailableBudget
		want     string // pods to start, finished, running
		err      string
	}{
		"one pod at a time":          {pods: "+++", limit: "1", want: "[a] 0 0 false"},
		"a percentage":               {pods: "++++", limit: "50%", want: "[a b] 0 0 false"},
		"a percentage below one pod": {pods: "+++", limit: "1%", want: "[a] 0 0 false"},
		"the next batch after the first": {
			pods: "+++", requests: requests{"a": completed}, limit: "1", want: "[b] 1 0 false",
		},
		"wait while a request runs": {
			pods: "+++", requests: requests{"a": running}, limit: "1", want: "[] 0 1 false",
		},
		"wait until a restarted pod is ready": {
			pods: "-++", requests: requests{"a": completed}, limit: "1", want: "[] 0 1 false",
		},
		"a pod that is not ready costs nothing": {pods: "++-", limit: "1", want: "[c] 0 0 false"},
		"the last batch is done": {
			pods: "+", requests: requests{"a": completed}, limit: "1", want: "[] 1 0 true",
		},
		"a failed request ends the run": {
			pods: "++", requests: requests{"a": request(v1beta1.ContainerRecreateRequestFailed)}, limit: "1",
			err: "restart containers of pod a",
		},
		"a budget without room": {
			pods: "+++", limit: "3", budget: full, want: "[] 0 0 false a: PodUnavailableBudget b: Exhausted",
		},
		"a budget with room for one pod": {
			pods: "+++", limit: "3", budget: room, want: "[a] 0 0 false b: PodUnavailableBudget b: Exhausted",
		},
		"a budget that does not count a running request yet": {
			pods: "+++", requests: requests{"a": running}, limit: "3", budget: room,
			want: "[] 0 1 false b: PodUnavailableBudget b: Exhausted",
		},
		"a budget that does not count an unavailable pod yet": {
			pods: "-++", requests: requests{"a": running}, limit: "3", budget: room,
			want: "[] 0 1 false b: PodUnavailableBudget b: Exhausted",
		},
		"a budget that counts an unavailable pod, with room for another": {
			pods: "-++", requests: requests{"a": running}, limit: "3", budget: counted,
			want: "[b] 0 1 false c: PodUnavailableBudget b: Exhausted",
		},
		"an unreadable limit": {pods: "+", limit: "x", err: "read maxUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := operate.Batch{Pods: podsOf(row.pods), Requests: row.requests, MaxUnavailable: intstr.Parse(row.limit)}
			if row.budget != nil {
				b.Budgets = []*policyv1beta1.PodUnavailableBudget{row.budget}
			}
			step, err := operate.Next(b)
			if row.err != "" || err != nil {
				if err == nil || row.err == "" || !strings.Contains(err.Error(), row.err) {
					t.Errorf("%v, want %q", err, row.err)
				}
				return
			}
			start := []string{}
			for _, pod := range step.Start {
				start = append(start, pod.Name)
			}
			got := fmt.Sprint(start, step.Finished, step.Running, step.Done)
			if len(step.Refused) > 0 {
				got += " " + step.Refused[0]
			}
			if got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}

func objectOf(apiVersion, kind string, paused any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName("o")
	if paused != nil {
		_ = unstructured.SetNestedField(o.Object, paused, "spec", "updateStrategy", "rollingUpdate", "paused")
	}
	return o
}

func TestProtect(t *testing.T) {
	set := objectOf("apps.kruise.io/v1beta1", "CloneSet", nil)
	for name, row := range map[string]struct {
		o      *unstructured.Unstructured
		to     kruise.DeletionProtectionType
		writes bool
		err    string
	}{
		"a workload":                {o: set, to: kruise.DeletionProtectionTypeAlways, writes: true},
		"what is not protected":     {o: set},
		"a kind without protection": {o: objectOf("v1", "Pod", nil), to: "Always", err: "Pod cannot be protected"},
		"a kind without dependents": {
			o: objectOf("v1", "Service", nil), to: kruise.DeletionProtectionTypeCascading,
			err: "Service has no dependents: --cascading would protect nothing",
		},
	} {
		ops, err := operate.Protect(row.o, row.to)
		if row.err != "" && (err == nil || err.Error() != row.err) || row.err == "" && err != nil {
			t.Errorf("%s: %v, want %q", name, err, row.err)
		}
		if len(ops) > 0 != row.writes {
			t.Errorf("%s: %v", name, ops)
		}
	}
}

func TestPauseAll(t *testing.T) {
	marked := objectOf("apps.kruise.io/v1beta1", "CloneSet", true)
	marked.SetAnnotations(map[string]string{"kruisekit.dev/paused-by-pause-all": "true"})
	for name, row := range map[string]struct {
		o      *unstructured.Unstructured
		resume bool
		writes bool
	}{
		"a rollout":                              {objectOf("apps.kruise.io/v1beta1", "CloneSet", nil), false, true},
		"what a user has paused":                 {objectOf("apps.kruise.io/v1beta1", "CloneSet", true), false, false},
		"resume what pause-all has paused":       {marked, true, true},
		"do not resume what a user has paused":   {objectOf("apps.kruise.io/v1beta1", "CloneSet", true), true, false},
		"a kind whose rollouts cannot be paused": {objectOf("apps.kruise.io/v1beta1", "UnitedDeployment", nil), false, false},
	} {
		if ops := operate.PauseAll(row.o, row.resume); len(ops) > 0 != row.writes {
			t.Errorf("%s: %v", name, ops)
		}
	}
}

func TestPullJob(t *testing.T) {
	for name, row := range map[string]struct {
		pull operate.Pull
		want string
	}{
		"nodes and pods at once": {operate.Pull{Image: "a", Pods: "a=b", Nodes: []string{"n"}}, "excludes"},
		"no image":               {operate.Pull{Image: "A:"}, "image"},
		"no selector":            {operate.Pull{Image: "a", Selector: "a in"}, "parse"},
	} {
		if _, err := operate.PullJob(row.pull); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", name, err, row.want)
		}
	}
	job, err := operate.PullJob(operate.Pull{Image: "a", Pods: "a=b", Timeout: time.Minute})
	if err != nil || job.Spec.PodSelector.MatchLabels["a"] != "b" || *job.Spec.PullPolicy.TimeoutSeconds != 60 {
		t.Errorf("%+v, %v", job, err)
	}
}

func TestProgress(t *testing.T) {
	image := func(name, tag string, progress int32) *v1beta1.NodeImage {
		n := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Spec.Images = map[string]v1beta1.ImageSpec{"app": {Tags: []v1beta1.ImageTagSpec{{Tag: tag}}}}
		if progress > 0 {
			n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{
				"app": {Tags: []v1beta1.ImageTagStatus{{Tag: tag, Phase: v1beta1.ImagePhasePulling, Progress: progress}}},
			}
		}
		return n
	}
	job := &v1beta1.ImagePullJob{}
	job.Spec.Image = "app:2"
	got, err := operate.Progress(job, []*v1beta1.NodeImage{image("b", "2", 0), image("a", "2", 40), image("c", "1", 10)})
	want := []operate.NodePull{
		{Node: "a", Phase: v1beta1.ImagePhasePulling, Progress: 40}, {Node: "b", Phase: v1beta1.ImagePhaseWaiting},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
