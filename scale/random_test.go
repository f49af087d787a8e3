package scale_test

import (
	"flag"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// The same cases each time, unless others are asked for: go test ./scale -seed=1000000. A failure names the case.
var seed = flag.Int64("seed", 1, "the first of the random cases")

// eachCase runs n random cases.
func eachCase(t *testing.T, n int64, try func(r *random) (problem string)) {
	t.Helper()
	t.Logf("-seed=%d", *seed)
	if testing.Short() {
		n = max(n/10, 20)
	}
	for i := range n {
		if problem := try(&random{rand.New(rand.NewSource(*seed + i))}); problem != "" {
			t.Fatalf("-seed=%d: %s", *seed+i, problem)
		}
	}
}

type random struct{ *rand.Rand }

func (r *random) n(most int32) int32           { return r.Int31n(most + 1) }
func (r *random) once(in int) bool             { return r.Intn(in) == 0 }
func pick[T any](r *random, of ...T) T         { return of[r.Intn(len(of))] }
func (r *random) seconds(most int) metav1.Time { return ago(time.Duration(r.Intn(most)) * time.Second) }

// pod is drawn from few values, so that many are alike.
func (r *random) pod(name string) *corev1.Pod {
	p := pod(name, onNode(fmt.Sprintf("n%d", r.Intn(6))), created(time.Duration(r.Intn(3))*time.Hour), restarted(r.n(2)))
	if r.once(8) {
		onNode("")(p)
		pending(p)
	}
	if r.once(6) {
		p.Status.Phase = pick(r, corev1.PodPending, corev1.PodUnknown, "")
	}
	if r.once(4) {
		notReady(p)
	}
	p.Status.Conditions[0].LastTransitionTime = r.seconds(30)
	if r.once(12) {
		p.Status.Conditions[0].LastTransitionTime.Reset()
	}
	if r.once(10) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: kruise.InPlaceUpdateReady, Status: pick(r, corev1.ConditionTrue, corev1.ConditionFalse),
		})
	}
	if r.once(3) {
		annotated(corev1.PodDeletionCost, pick(r, "1", "-1", "5", "+5", "x"))(p)
	}
	if r.once(4) {
		in(pick(r, kruise.LifecycleStateNormal, kruise.LifecycleStatePreparingNormal, kruise.LifecycleStatePreparingUpdate,
			kruise.LifecycleStateUpdating, kruise.LifecycleStateUpdated, "Sleeping"))(p)
	}
	if r.once(12) {
		in(kruise.LifecycleStatePreparingDelete)(p)
	}
	if r.once(3) {
		labelled("hold", "yes")(p)
	}
	if r.once(12) {
		annotated(kruise.InPlaceUpdateGraceKey, pick(r, "", "{}"))(p)
	}
	labelled("is", pick(r, "A", "B", "7"))(p)
	return p
}

func (r *random) instances(prefix string, n int) []scale.Instance {
	all := make([]scale.Instance, 0, n)
	for i := range n {
		name := fmt.Sprintf("%s%d", prefix, i)
		instance := scale.Instance{Name: name, Updated: r.once(2), MarkedForDeletion: r.once(10), Terminating: r.once(25)}
		instance.Finished = instance.Terminating && r.once(2)
		if !r.once(20) {
			instance.Pods = append(instance.Pods, r.pod(name))
		}
		if r.once(8) {
			instance.Size = r.Intn(4) - 1
			instance.Pods = append(instance.Pods, nil, r.pod(name+"-worker"))
		}
		all = append(all, instance)
	}
	return all
}

func (r *random) input() scale.Input {
	input := scale.Input{
		Now:       now(),
		Instances: r.instances("web-", r.Intn(14)),
		Limits: scale.Limits{
			Replicas:               r.n(12),
			MaxUnavailable:         r.n(4),
			MaxSurge:               pick[int32](r, 0, 0, 1, 3),
			MaxUnavailableScaling:  ptr.To(pick[int32](r, 0, 2, 5, noLimit, noLimit)),
			NoRollback:             r.once(3),
			ExcludePreparingDelete: r.once(3),
		},
		MinReadySeconds: pick[int32](r, 0, 0, 10),
		Updates: pick(r, scale.UpdatesRun, scale.UpdatesRun, scale.UpdatesRun,
			scale.UpdatesPaused, scale.UpdatesOnDelete),
		UpdateOnly:               r.once(12),
		PreparingUpdateIsUpdated: r.once(3),
		UnavailableFirst:         r.once(4),
	}
	if r.once(2) { // nothing to create or delete, so that updates are tried as often
		input.Limits.Replicas, input.Limits.ExcludePreparingDelete = 0, false
		for i := range input.Instances {
			input.Instances[i].MarkedForDeletion, input.Instances[i].Terminating = false, false
			for _, p := range podsOf(input.Instances[i]) {
				if leaving(input.Instances[i]) {
					in(kruise.LifecycleStateNormal)(p)
				}
			}
			input.Limits.Replicas++
		}
	}
	input.Limits.Partition = r.n(input.Limits.Replicas)
	if r.once(2) {
		input.Hooks = &kruise.Lifecycle{
			PreDelete:     &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}, MarkPodNotReady: r.once(4)},
			InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}},
		}
	}
	if r.once(3) {
		input.Priority = &kruise.UpdatePriorityStrategy{OrderPriority: []kruise.UpdatePriorityOrderTerm{{OrderedKey: "is"}}}
	}
	if r.once(3) {
		input.Scatter = kruise.UpdateScatterStrategy{{Key: "is", Value: "A"}, {Key: "is", Value: "B"}}
	}
	if r.once(2) {
		input.SpreadKeys = [][]string{{"zone"}, {"zone", "rack"}, {"zone", corev1.LabelHostname}}[r.Intn(3)]
		input.NodeLabels = map[string]map[string]string{"n5": nil}
		for i := range 5 {
			input.NodeLabels[fmt.Sprintf("n%d", i)] = map[string]string{
				"zone": fmt.Sprint(i % 2), "rack": fmt.Sprint(i % 3), corev1.LabelHostname: fmt.Sprintf("n%d", i),
			}
		}
	}
	return input
}

// slots are some of the instances' names, and some others.
func (r *random) slots(input scale.Input) scale.Input {
	input.Slots = []string{}
	n, gaps := r.Intn(14), 6
	if r.once(2) { // as many as there are instances, so that updates are tried as often
		n, gaps = len(input.Instances), 100
	}
	for i := range n {
		if !r.once(gaps) {
			input.Slots = append(input.Slots, fmt.Sprintf("web-%d", i))
		}
	}
	input.Limits.Partition = r.n(int32(len(input.Slots)))
	input.InOrder, input.NoCreate = r.once(3), r.once(6)
	for _, i := range r.Perm(16)[:r.Intn(2)*r.Intn(8)] { // some are slots
		input.SurgeSlots = append(input.SurgeSlots, fmt.Sprintf("web-%d", i))
	}
	return sensible(input)
}

// sensible clears the fields that the mode of an input ignores.
func sensible(in scale.Input) scale.Input {
	if len(in.SpreadKeys) == 0 {
		in.NodeLabels = nil
	}
	if in.Slots == nil {
		in.InOrder, in.NoCreate, in.SurgeSlots = false, false, nil
		return in
	}
	in.Limits.Replicas, in.Limits.NoRollback, in.Limits.ExcludePreparingDelete = int32(len(in.Slots)), false, false
	in.SpreadKeys, in.NodeLabels = nil, nil
	if in.InOrder {
		in.Limits.MaxUnavailableScaling, in.NoCreate, in.SurgeSlots = nil, false, nil
	}
	if len(in.SurgeSlots) == 0 {
		in.Limits.MaxSurge = 0
	}
	if in.Priority == nil {
		in.Scatter = nil
	}
	return in
}
