//go:build envtest

package main

import (
	"fmt"
	"io"
	"log"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kruisekit/kruisekit/test/cluster"
)

// plane is the operator against a real API server, with a kubelet that only writes statuses.
type plane struct {
	*testing.T

	client    *kubernetes.Clientset
	namespace string
}

// TestOnAPIServer creates groups, updates them in place, and rolls them back.
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
	p := &plane{T: t, client: kubernetes.NewForConfigOrDie(c.Config), namespace: c.Namespace(t)}
	teams := p.client.RESTClient().Post().AbsPath("/apis/example.com/v1/namespaces/"+p.namespace+"/teams", "")
	if err := teams.Body([]byte(`{"apiVersion":"example.com/v1","kind":"Team","metadata":{"name":"web"},"spec":{` +
		`"replicas":2,"size":2,"maxUnavailable":1,` + templates(0) + `}}`)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	first := p.settle(0)
	for _, version := range []int{1, 0} {
		if err := p.client.RESTClient().Patch(types.MergePatchType).
			AbsPath("/apis/example.com/v1/namespaces/"+p.namespace+"/teams", "web").
			Body([]byte(`{"spec":{` + templates(version) + `}}`)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		if now := p.settle(version); !maps.Equal(first, now) {
			t.Errorf("pods were recreated: before %v, after %v", first, now)
		}
	}
}

func templates(version int) string {
	return fmt.Sprintf(`"leader":{"spec":{"containers":[{"name":"main","image":"leader:%[1]d"}]}},`+
		`"worker":{"spec":{"containers":[{"name":"main","image":"worker:%[1]d"}]}}`, version)
}

// settle makes passes, each of a new process, until all groups run the images in traffic. It returns the UIDs of the
// pods by their names.
func (p *plane) settle(version int) map[string]types.UID {
	p.Helper()
	why := ""
	for range 60 {
		o := operator{Clientset: p.client}
		if err := o.reconcileAll(p.Context()); err != nil {
			p.Fatal(err)
		}
		list, err := p.client.CoreV1().Pods(p.namespace).List(p.Context(), metav1.ListOptions{})
		if err != nil {
			p.Fatal(err)
		}
		uids := map[string]types.UID{}
		why = fmt.Sprintf("%d pods", len(list.Items))
		for i := range list.Items {
			pod := &list.Items[i]
			uids[pod.Name] = pod.UID
			want := fmt.Sprintf("worker:%d", version)
			if pod.Labels[memberLabel] == "leader" {
				want = fmt.Sprintf("leader:%d", version)
			}
			if s := pod.Status.ContainerStatuses; len(s) == 0 || s[0].Image != want || !serves(pod) {
				why = fmt.Sprintf("pod %s is not in traffic with %s: %v", pod.Name, want, s)
			}
			p.run(pod)
		}
		if why == "4 pods" {
			return uids
		}
	}
	p.Fatal(why)
	return nil
}

// run is one step of the kubelet.
func (p *plane) run(pod *corev1.Pod) {
	p.Helper()
	run(pod)
	if _, err := p.client.CoreV1().Pods(p.namespace).UpdateStatus(p.Context(), pod, metav1.UpdateOptions{}); err != nil {
		p.Fatal(err)
	}
}
