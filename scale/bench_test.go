package scale_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// fleet has n instances on a node for each twenty of them, in three zones.
func fleet(n int) scale.Input {
	r := rand.New(rand.NewSource(1))
	input := scale.Input{
		Now: now(), MinReadySeconds: 10, NodeLabels: map[string]map[string]string{},
		Limits: scale.Limits{Replicas: int32(n), MaxUnavailable: int32(n / 20)},
	}
	nodes := n/20 + 1
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		input.NodeLabels[name] = map[string]string{
			"zone": fmt.Sprint(i % 3), "rack": fmt.Sprint(i % 40), "kubernetes.io/hostname": name,
		}
	}
	for i := range n {
		name := fmt.Sprintf("web-%05x", r.Intn(16*n)*n+i)
		instance := updated(name, onNode(fmt.Sprintf("node-%d", r.Intn(nodes))), in(kruise.LifecycleStateNormal),
			readySince(time.Duration(60+r.Intn(100_000))*time.Second),
			created(time.Duration(100_000+r.Intn(100_000))*time.Second))
		input.Instances = append(input.Instances, instance)
	}
	return input
}

func BenchmarkCompute(b *testing.B) {
	situations := map[string]func(*scale.Input){
		"idle": func(in *scale.Input) { in.NodeLabels = nil },
		"rollout": func(in *scale.Input) {
			in.NodeLabels = nil
			for i := range in.Instances {
				in.Instances[i].Updated = i%2 == 0
				if i%200 == 0 {
					notReady(in.Instances[i].Pods[0])
				}
			}
		},
		"scale in": func(in *scale.Input) {
			in.Limits.Replicas /= 2
			in.SpreadKeys = []string{"zone", "rack", "kubernetes.io/hostname"}
		},
		"slots": func(in *scale.Input) {
			for i := range in.Instances {
				in.Instances[i].Updated = i%2 == 0
				in.Slots = append(in.Slots, in.Instances[i].Name)
			}
			in.NodeLabels = nil
		},
	}
	for _, situation := range []string{"idle", "rollout", "scale in", "slots"} {
		for _, n := range []int{1_000, 10_000, 50_000, 200_000} {
			b.Run(fmt.Sprintf("%s/%d", situation, n), func(b *testing.B) {
				input := fleet(n)
				situations[situation](&input)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := scale.Plan(input); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkComputeGrows tells what makes a plan of many instances dearer, by the instance, than one of few. "touch"
// only reads what Compute must read of each pod: its phase, a label, its conditions, and its name, into a map. From
// 10,000 to 200,000 instances that alone becomes about as much dearer by the instance as a plan with nothing to do:
// pods lie scattered in memory, and no longer in the processor's caches. Compute adds no work that grows faster than
// the number of instances.
func BenchmarkComputeGrows(b *testing.B) {
	for _, n := range []int{10_000, 200_000} {
		input := fleet(n)
		perInstance := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/instance") }
		b.Run(fmt.Sprintf("touch/%d", n), func(b *testing.B) {
			for b.Loop() {
				if found := touch(input.Instances); found != n {
					b.Fatal(found)
				}
			}
			perInstance(b)
		})
		b.Run(fmt.Sprintf("compute/%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := scale.Plan(input); err != nil {
					b.Fatal(err)
				}
			}
			perInstance(b)
		})
	}
}

// touch counts the instances that run, are Ready and in the state Normal, by their names.
func touch(all []scale.Instance) int {
	names := make(map[string]int, len(all))
	for i := range all {
		for _, pod := range all[i].Pods {
			if pod.Status.Phase != corev1.PodRunning ||
				pod.Labels[kruise.LifecycleStateKey] != string(kruise.LifecycleStateNormal) {
				continue
			}
			for j := range pod.Status.Conditions {
				if c := &pod.Status.Conditions[j]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					names[all[i].Name] = i
				}
			}
		}
	}
	return len(names)
}

// TestComputeGrows has four times the instances: a plan that looks at each of them for each other would show.
func TestComputeGrows(t *testing.T) {
	allocations := func(n int) float64 {
		input := fleet(n)
		input.Limits.Replicas /= 2
		input.SpreadKeys = []string{"zone", "rack"}
		return testing.AllocsPerRun(1, func() { compute(t, input) })
	}
	few, many := allocations(2_000), allocations(8_000)
	if many > 4*few || many > 150 {
		t.Errorf("from %.0f allocations to %.0f", few, many)
	}
}
