//go:build envtest

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kruisekit/kruisekit/test/cluster"
)

// plane is the operator against a real API server, with a kubelet that only writes statuses.
type plane struct {
	*testing.T

	config    *rest.Config
	client    *kubernetes.Clientset
	namespace string
	// diesAt is the write at which the process of the next pass dies; zero for none.
	diesAt, writes int
	diesAfter      bool
	kills          int
}

// TestOnAPIServer creates groups, updates them in place, rolls them back, and kills the operator at each of its writes
// meanwhile.
func TestOnAPIServer(t *testing.T) {
	log.SetOutput(io.Discard)
	c := cluster.Start(t, cluster.Options{})
	for _, command := range [][]string{
		{"apply", "-f", "team.yaml"}, {"wait", "--for=condition=Established", "--timeout=60s", "crd/teams.example.com"},
	} {
		if out, err := c.Kubectl(t.Context(), command...); err != nil {
			t.Fatal(out, err)
		}
	}
	p := &plane{T: t, config: c.Config, client: kubernetes.NewForConfigOrDie(c.Config), namespace: c.Namespace(t)}
	p.team(http.MethodPost, "", map[string]any{
		"apiVersion": "example.com/v1", "kind": "Team", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"replicas": 2, "size": 2, "maxUnavailable": 1, "leader": container("leader:0"), "worker": container("worker:0"),
		},
	})
	p.settle("leader:0", "worker:0")
	first := p.uids()

	p.update("leader:1", "worker:1")
	p.settle("leader:1", "worker:1")
	p.update("leader:0", "worker:0")
	p.settle("leader:0", "worker:0")

	for write := 1; ; write++ {
		leader, worker, kills := fmt.Sprintf("leader:k%d", write), fmt.Sprintf("worker:k%d", write), p.kills
		p.diesAt, p.diesAfter = write, write%2 == 0
		p.update(leader, worker)
		p.settle(leader, worker)
		if p.kills == kills {
			break // a rollout has no more writes in one pass
		}
	}
	if p.kills < 4 {
		t.Errorf("the operator was killed %d times", p.kills)
	}
	if last := p.uids(); !maps.Equal(first, last) {
		t.Errorf("pods were recreated: before %v, after %v", first, last)
	}
	revisions, err := p.client.AppsV1().ControllerRevisions(p.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(revisions.Items) > historyLimit+2 {
		t.Errorf("%d revisions are stored: %v", len(revisions.Items), err)
	}
}

func container(image string) map[string]any {
	return map[string]any{"spec": corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
}

// team sends a request about teams.
func (p *plane) team(verb, name string, body any) []byte {
	p.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		p.Fatal(err)
	}
	request := p.client.RESTClient().Verb(verb).AbsPath("/apis/example.com/v1/namespaces/"+p.namespace+"/teams", name)
	if verb == http.MethodPatch {
		request = request.SetHeader("Content-Type", string(types.MergePatchType))
	}
	answer, err := request.Body(raw).DoRaw(p.Context())
	if err != nil {
		p.Fatalf("%s team: %v, %s", verb, err, answer)
	}
	return answer
}

func (p *plane) update(leader, worker string) {
	p.Helper()
	p.team(http.MethodPatch, "web", map[string]any{"spec": map[string]any{
		"leader": container(leader), "worker": container(worker),
	}})
}

// settle makes passes, each of a new process, until all groups run the images in traffic.
func (p *plane) settle(leader, worker string) {
	p.Helper()
	why := ""
	for range 60 {
		p.pass()
		if why = p.look(leader, worker); why == "" {
			return
		}
		p.runPods()
	}
	p.Fatal(why)
}

// pass is one process of the operator.
func (p *plane) pass() {
	p.Helper()
	ctx, die := context.WithCancel(p.Context())
	defer die()
	p.writes = 0
	config := rest.CopyConfig(p.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet || p.diesAt == 0 {
				return next.RoundTrip(r)
			}
			if p.writes++; p.writes != p.diesAt {
				return next.RoundTrip(r)
			}
			p.kills, p.diesAt = p.kills+1, 0
			defer die()
			if p.diesAfter {
				answer, err := next.RoundTrip(r)
				if err == nil {
					err = answer.Body.Close()
				}
				return nil, errors.Join(errDead, err)
			}
			return nil, errDead
		})
	})
	o := operator{Clientset: kubernetes.NewForConfigOrDie(config)}
	if err := o.reconcileAll(ctx); err != nil && ctx.Err() == nil {
		p.Fatal(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (p *plane) pods() []corev1.Pod {
	p.Helper()
	list, err := p.client.CoreV1().Pods(p.namespace).List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return list.Items
}

// runPods is one step of the kubelet.
func (p *plane) runPods() {
	p.Helper()
	for _, pod := range p.pods() {
		run(&pod)
		if _, err := p.client.CoreV1().Pods(p.namespace).UpdateStatus(p.Context(), &pod, metav1.UpdateOptions{}); err != nil {
			p.Fatal(err)
		}
	}
}

// look returns what is not yet as wanted. No container may change in traffic, and one group at most is out of traffic
// once all have been in it.
func (p *plane) look(leader, worker string) string {
	p.Helper()
	serving, waits := map[string]int{}, ""
	pods := p.pods()
	for _, pod := range pods {
		group, want := pod.Labels[groupLabel], worker
		if pod.Labels[memberLabel] == "leader" {
			want = leader
		}
		image := pod.Spec.Containers[0].Image
		if s := pod.Status.ContainerStatuses; len(s) == 0 || s[0].Image != want || image != want {
			waits = fmt.Sprintf("pod %s is to run %s instead of %s", pod.Name, want, image)
			if len(s) > 0 && s[0].Image != image && serves(&pod) {
				p.Fatalf("pod %s changes in traffic", pod.Name)
			}
		}
		if serves(&pod) {
			serving[group]++
		}
	}
	whole := 0
	for _, n := range serving {
		if n == 2 {
			whole++
		}
	}
	if p.kills > 0 && whole == 0 {
		p.Fatal("no group is in traffic")
	}
	if len(pods) != 4 || whole != 2 {
		return fmt.Sprintf("%d pods, %d groups in traffic; %s", len(pods), whole, waits)
	}
	return waits
}

func (p *plane) uids() map[string]types.UID {
	p.Helper()
	uids := map[string]types.UID{}
	for _, pod := range p.pods() {
		uids[pod.Name] = pod.UID
	}
	return uids
}
