package scale_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// tape reads values from bytes, and zeros behind their end.
type tape []byte

func (b *tape) next() byte {
	if len(*b) == 0 {
		return 0
	}
	first := (*b)[0]
	*b = (*b)[1:]
	return first
}

func (b *tape) bool() bool { return b.next()%2 == 1 }

// number is small, or as large as numbers are.
func (b *tape) number() int32 {
	switch n := b.next(); n {
	case 255:
		return math.MaxInt32
	case 254:
		return math.MinInt32
	case 253:
		return -1
	default:
		return int32(n % 16)
	}
}

func (b *tape) text(of ...string) string { return of[int(b.next())%len(of)] }

func (b *tape) time() metav1.Time {
	switch b.next() % 8 {
	case 0:
		return metav1.Time{}
	case 1:
		return metav1.Unix(math.MaxInt64, 0)
	case 2:
		return metav1.Unix(math.MinInt64, 0)
	case 3:
		var word [8]byte
		for i := range word {
			word[i] = b.next()
		}
		return metav1.Unix(int64(binary.BigEndian.Uint64(word[:])), 0)
	}
	return metav1.NewTime(now().Add(time.Duration(b.number()) * time.Second))
}

func (b *tape) pod() *corev1.Pod {
	if b.next() == 7 {
		return nil
	}
	p := &corev1.Pod{}
	p.CreationTimestamp = b.time()
	p.Spec.NodeName = b.text("", "n0", "n1", "n2", "n3")
	p.Status.Phase = corev1.PodPhase(b.text("", "Running", "Running", "Pending", "Unknown", "Gone"))
	for range b.next() % 4 {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type:   corev1.PodConditionType(b.text("", "Ready", string(kruise.InPlaceUpdateReady))),
			Status: corev1.ConditionStatus(b.text("True", "False", "")), LastTransitionTime: b.time(),
		})
	}
	for range b.next() % 3 {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{RestartCount: b.number()})
	}
	if b.bool() {
		p.Labels = map[string]string{
			"is":                     b.text("A", "B-9", ""),
			kruise.LifecycleStateKey: b.text("", "PreparingDelete", "PreparingUpdate", "Normal", "Updated", "Dreaming"),
		}
		p.Annotations = map[string]string{
			corev1.PodDeletionCost:       b.text("", "-", "-1", "2147483647", "99999999999"),
			kruise.InPlaceUpdateGraceKey: b.text("", "x"),
		}
	}
	return p
}

func (b *tape) input() scale.Input {
	input := scale.Input{
		Now:                      b.time().Time,
		MinReadySeconds:          b.number(),
		Updates:                  scale.Updates(b.text("", "", "Paused", "OnDelete", "Never")),
		UpdateOnly:               b.bool(),
		PreparingUpdateIsUpdated: b.bool(),
		UnavailableFirst:         b.bool(),
		InOrder:                  b.bool(),
		NoCreate:                 b.bool(),
		Limits: scale.Limits{
			Replicas:               b.number(),
			Partition:              b.number(),
			MaxUnavailable:         b.number(),
			MaxSurge:               b.number(),
			MaxUnavailableScaling:  ptr.To(b.number()),
			NoRollback:             b.bool(),
			ExcludePreparingDelete: b.bool(),
		},
	}
	if b.bool() {
		hook := &kruise.LifecycleHook{LabelsHandler: map[string]string{"is": "A"}, MarkPodNotReady: b.bool()}
		input.Hooks = &kruise.Lifecycle{PreDelete: hook}
		if b.bool() {
			input.Hooks.InPlaceUpdate = hook
		}
	}
	if b.bool() {
		input.Priority = &kruise.UpdatePriorityStrategy{}
		if b.bool() {
			input.Priority.WeightPriority = []kruise.UpdatePriorityWeightTerm{{
				Weight: b.number(), MatchSelector: metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{
						Key: "is", Operator: metav1.LabelSelectorOperator(b.text("Exists", "Like")),
					}},
				},
			}}
		}
	}
	for range b.next() % 3 {
		input.Scatter = append(input.Scatter, kruise.UpdateScatterTerm{Key: "is", Value: b.text("A", "B-9")})
	}
	for range b.next() % 3 {
		input.SpreadKeys = append(input.SpreadKeys, b.text("zone", corev1.LabelHostname, ""))
		input.NodeLabels = map[string]map[string]string{
			"n0": {"zone": "a"}, "n1": {"zone": "b", corev1.LabelHostname: "n1"}, "n2": nil,
		}
	}
	if b.bool() {
		input.Slots = []string{}
		for i := range b.next() % 8 {
			input.Slots = append(input.Slots, fmt.Sprint(i*(1+b.next()%2)))
		}
	}
	for range b.next() % 4 {
		input.SurgeSlots = append(input.SurgeSlots, b.text("", "5", "6", "7", "8", "9", "10", "20"))
		input.Pinned = append(input.Pinned, b.text("", "0", "1", "2", "3", "7"))
	}
	for i := range b.next() % 12 {
		instance := scale.Instance{
			Name:              fmt.Sprint(i),
			Size:              int(b.number()),
			Updated:           b.bool(),
			MarkedForDeletion: b.bool(),
			Terminating:       b.next()%8 == 1,
			Outdated:          b.next()%8 == 1,
			Impaired:          b.next()%8 == 1,
		}
		if b.next() == 9 {
			instance.Name = ""
		}
		for range b.next() % 3 {
			instance.Pods = append(instance.Pods, b.pod())
		}
		input.Instances = append(input.Instances, instance)
	}
	if b.next() != 9 {
		input = sensible(input)
	}
	return input
}

// FuzzCompute survives anything, and crosses no bound that makes sense.
func FuzzCompute(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("some instances, some slots, and one or the other strategy"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := tape(data)
		input := b.input()
		plan, err := scale.Plan(input)
		again, errAgain := scale.Plan(input)
		if story(plan) != story(again) || (err == nil) != (errAgain == nil) {
			t.Errorf("two plans of the same:\n%+v, %v\n%+v, %v", plan, err, again, errAgain)
		}
		if err != nil {
			return
		}
		if len(plan.Create) > 1<<16 || len(plan.Create) > 0 && len(plan.Delete) > 0 || plan.RequeueAfter < 0 {
			t.Errorf("that makes no sense: %+v", plan)
		}
		if len(plan.Update) > 0 && len(plan.Create)+len(plan.Delete)+len(plan.Restore) > 0 {
			t.Errorf("it updates, and changes the number of instances: %+v", plan)
		}
		beside := 0
		for _, i := range input.Instances {
			beside += int(1 - truth(slices.Contains(input.Slots, i.Name)))
		}
		for _, c := range plan.Create {
			if beside += int(1 - truth(slices.Contains(input.Slots, c.Slot))); input.Slots != nil &&
				!slices.Contains(input.Slots, c.Slot) && beside > int(input.Limits.MaxSurge) {
				t.Errorf("%d are beside the slots", beside)
			}
		}
		touched := map[string]bool{}
		for _, all := range [][]scale.Instance{plan.Restore, plan.Delete, plan.Update} {
			for _, i := range all {
				if touched[i.Name] || i.Terminating {
					t.Errorf("%s is touched twice, or too late", i.Name)
				}
				touched[i.Name] = true
			}
		}
	})
}
