package podprobe_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

// A node probes the pods that a marker selects.
func ExampleDesired() {
	pod := podOf("shop", "game-0", map[string]string{"app": "game"})
	marker := markerOf("shop", "game", "game", execOf("idle", "test", "-f", "/run/idle"))
	content := podprobe.Desired(podprobe.Node{Pods: []*corev1.Pod{pod}, Markers: []*v1alpha1.PodProbeMarker{marker}})
	for _, p := range content.PodProbes {
		fmt.Println(p.Namespace, p.Name, p.Probes[0].Name, p.Probes[0].Probe.Exec.Command)
	}
	fmt.Println("changed:", content.Changed)
	// Output:
	// shop game-0 game#idle [test -f /run/idle]
	// changed: true
}

// A result becomes a condition and labels of the pod.
func ExampleMark() {
	pod := podOf("shop", "game-0", map[string]string{"app": "game"})
	idle := execOf("idle", "test", "-f", "/run/idle")
	idle.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{
		State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"idle": "true"},
	}}
	states := []v1alpha1.ContainerProbeState{{Name: "game#idle", State: v1alpha1.ProbeSucceeded, Message: "no players"}}
	marking := podprobe.Mark(pod, podprobe.Outcomes(states, []*v1alpha1.PodProbeMarker{
		markerOf("shop", "game", "game", idle),
	}))
	patch, err := marking.Write().Data()
	if err != nil {
		panic(err)
	}
	fmt.Println(marking.Conditions[0].Type, marking.Conditions[0].Status)
	fmt.Println(string(patch[:60]) + "...")
	// Output:
	// example.com/idle True
	// {"metadata":{"labels":{"idle":"true"},"uid":"uid-shop-game-0...
}

// A result counts when the threshold is reached, and only for its container.
func ExampleMemory() {
	asked := v1alpha1.ContainerProbe{Name: "game#idle", ContainerName: "main"}
	asked.Probe.FailureThreshold = 2
	now, memory := time.Unix(1_800_000_000, 0), podprobe.Memory{}
	for range 2 {
		var run bool
		memory, run = memory.Look(&asked, &podprobe.Container{ID: "c1", Running: true, StartedAt: now.Add(-time.Minute)}, now)
		if run {
			memory = memory.Judge(&asked, podprobe.Result{Output: "players"}, now)
		}
		fmt.Printf("%s %q\n", memory.State, memory.Message)
	}
	// Output:
	// Unknown ""
	// Failed "players"
}

// The status of a node has the states of all its probes.
func ExampleReport() {
	spec := &v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
		Namespace: "shop", Name: "game-0", UID: "u", Probes: []v1alpha1.ContainerProbe{{Name: "game#idle"}},
	}}}
	found := podprobe.Memory{State: v1alpha1.ProbeFailed, Message: "players", At: time.Unix(1_800_000_000, 0)}
	status, flips := podprobe.Report(podprobe.Reporting{
		Spec:     spec,
		Status:   &v1alpha1.NodePodProbeStatus{},
		Findings: map[podprobe.Key]podprobe.Memory{{UID: "u", Name: "game#idle"}: found},
	})
	fmt.Println(status.PodProbeStatuses[0].ProbeStates[0].State, len(flips))
	// Output: Failed 1
}
