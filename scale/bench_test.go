package scale_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

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
