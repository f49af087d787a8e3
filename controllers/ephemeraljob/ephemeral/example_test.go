package ephemeral_test

import (
	"fmt"

	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
)

// A job whose parallelism is two, with one pod that runs the containers and two that have none.
func ExamplePlan() {
	job := newJob(parallelism(2))
	pass := ephemeral.Plan(ephemeral.Input{Job: job, Pods: newPods(job, "web-1=running web-2 web-3"), Now: epoch()})
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() { // as driver.Run does
		for _, w := range writes {
			fmt.Println(w.Verb, w.Object.GetName(), w.Subresource)
			pass.Answer(epoch(), w, w.Object, nil) // with the error of the API server, if there is one
		}
	}
	status := pass.Conclude().Status
	fmt.Printf("%s: %d of %d pods wait, %d run\n", status.Phase, status.Waiting, status.Matches, status.Running)
	for _, n := range pass.Notes() {
		fmt.Println(n)
	}
	// Output:
	// Patch web-2 ephemeralcontainers
	// Running: 1 of 3 pods wait, 1 run
	// ParallelismReached: 1 pods wait for others, at most 2 run the containers
}

// A pod whose container has ended, for one job and for another one with the same name of the container.
func ExampleRule_State() {
	job, other := newJob(), newJob()
	other.UID = "uid-other"
	pod := newPod(job, "web-1", "succeeded")
	for _, j := range []*ephemeralJob{job, other} {
		rule, err := ephemeral.NewRule(j)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rule.State(pod))
	}
	// Output:
	// Succeeded
	// Taken
}

// The variable of the job is the last one of each container.
func ExampleContainers() {
	for _, c := range ephemeral.Containers(newJob()) {
		fmt.Println(c.Name, c.Image, c.Env)
	}
	// Output:
	// shell busybox:1 [{KRUISE_EJOB_ID uid-debug nil}]
}
