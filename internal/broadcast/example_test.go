package broadcast_test

import (
	"fmt"

	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// A job with room for two pods at once, on four nodes of which one is cordoned and one has run the job.
func ExamplePlan() {
	job := newJob(parallelism("2"))
	pass, err := broadcast.Plan(broadcast.Input{
		Job: job, Nodes: newNodes("a b c:cordoned d e"), Pods: newPods(job, "a=succeeded"), Now: epoch(),
	})
	if err != nil {
		panic(err)
	}
	for _, node := range pass.Nodes {
		fmt.Printf("%s: %s %q\n", node.Name, node.State, node.Reason)
	}
	for _, pod := range pass.Create {
		fmt.Println("create", pod.Name, "on", eligible.NodeOf(pod))
	}
	status := pass.Conclude(len(pass.Create), nil)
	fmt.Println(status.Phase, status.Desired, status.Active, status.Succeeded, status.Failed)
	for _, n := range pass.Notes {
		fmt.Println(n)
	}
	// Output:
	// a: Succeeded ""
	// b: Due ""
	// c: Skipped "NodeUnschedulable"
	// d: Due ""
	// e: Due ""
	// create check-js56e83mjb on b
	// create check-84c6g1rfiu on d
	// running 4 2 1 0
	// NodeUnschedulable: 1 nodes get no pod (the node is unschedulable): c
	// ParallelismReached: 1 nodes wait for others, at most 2 pods are active: e
}

func ExampleParallelism() {
	job := newJob(parallelism("40%"))
	n, err := broadcast.Parallelism(&job.Spec, 6)
	fmt.Println(n, err)
	// Output: 3 <nil>
}

// A pod that runs stays on a node that is cordoned. One that waits for the scheduler does not.
func ExamplePodRule_Keeps() {
	pods, node := newPods(newJob(), "a=running a=pending"), newNodes("a:cordoned")[0]
	fmt.Println(broadcast.NewPodRule(pods[0]).Keeps(node), broadcast.NewPodRule(pods[1]).Keeps(node))
	// Output: true false
}

func ExamplePodName() {
	fmt.Println(broadcast.PodName(newJob(), "node-1"))
	// Output: check-vprtf6loeq
}

func ExampleRule() {
	rule := broadcast.Rule(&newJob().Spec.Template)
	for _, node := range newNodes("a b:tainted") {
		fmt.Println(node.Name, rule.Check(node).Run)
	}
	// Output:
	// a true
	// b false
}

func ExampleRestarts() {
	fmt.Println(broadcast.Restarts(newPods(newJob(), "a=3")[0]))
	// Output: 3
}

func ExampleOver() {
	fmt.Println(broadcast.Over(newJob()), broadcast.Over(newJob(ended("Complete", 0))))
	// Output: false true
}
