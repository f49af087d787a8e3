package scale_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

const noLimit = 1<<31 - 1

func now() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

type change = func(*corev1.Pod)

// pod is available since an hour, two hours old, and alone on its node.
func pod(name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: ago(2 * time.Hour), Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{NodeName: "of-" + name},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour),
			}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}},
		},
	}
	for _, f := range changes {
		f(p)
	}
	return p
}

func notReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func pending(p *corev1.Pod) {
	p.Status.Phase, p.Status.Conditions[0].Status = corev1.PodPending, corev1.ConditionFalse
}
func onNode(name string) change         { return func(p *corev1.Pod) { p.Spec.NodeName = name } }
func labelled(key, value string) change { return func(p *corev1.Pod) { p.Labels[key] = value } }
func annotated(key, value string) change {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func in(state kruise.LifecycleState) change { return labelled(kruise.LifecycleStateKey, string(state)) }

func readySince(d time.Duration) change {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = ago(d) }
}

func created(d time.Duration) change {
	return func(p *corev1.Pod) { p.CreationTimestamp = ago(d) }
}

func restarted(n int32) change {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = n }
}

func old(name string, changes ...change) scale.Instance {
	return scale.Instance{Name: name, Pods: []*corev1.Pod{pod(name, changes...)}}
}

func updated(name string, changes ...change) scale.Instance {
	i := old(name, changes...)
	i.Updated = true
	return i
}

// instances reads a notation: 3 O are three old ones, N are updated. ! is not ready, x is doomed, p is
// PreparingDelete, u is PreparingUpdate. They are named by their place, such as 0O.
func instances(t testing.TB, notation string) []scale.Instance {
	t.Helper()
	var all []scale.Instance
	for word := range strings.FieldsSeq(notation) {
		end := strings.IndexAny(word, "ON")
		if end < 0 {
			t.Fatalf("%q has no O and no N", word)
		}
		count, err := strconv.Atoi(word[:end])
		if err != nil {
			t.Fatal(err)
		}
		for range count {
			name := fmt.Sprintf("%02d%s", len(all), word[end:end+1])
			i := old(name)
			i.Updated = word[end] == 'N'
			for _, mark := range word[end+1:] {
				switch mark {
				case '!':
					notReady(i.Pods[0])
				case 'x':
					i.MarkedForDeletion = true
				case 'p':
					in(kruise.LifecycleStatePreparingDelete)(i.Pods[0])
				case 'u':
					in(kruise.LifecycleStatePreparingUpdate)(i.Pods[0])
				}
			}
			all = append(all, i)
		}
	}
	return all
}

func compute(t testing.TB, input scale.Input) scale.Result {
	t.Helper()
	if input.Now.IsZero() {
		input.Now = now()
	}
	plan, err := scale.Plan(input)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func names(all []scale.Instance) string {
	words := make([]string, len(all))
	for i := range all {
		words[i] = all[i].Name
	}
	return strings.Join(words, " ")
}

// births are slots, with + for the update revision.
func births(all []scale.Creation) string {
	words := make([]string, len(all))
	for i, b := range all {
		words[i] = b.Slot
		if b.Updated {
			words[i] += "+"
		}
	}
	return strings.Join(words, " ")
}

func codes(plan scale.Result) string {
	var words []string
	for _, n := range plan.Notes {
		if n.Object == "" {
			words = append(words, n.Code)
		}
	}
	return strings.Join(words, " ")
}

// story tells a plan in a line.
func story(plan scale.Result) string {
	var words []string
	for _, act := range [][2]string{
		{"restore", names(plan.Restore)},
		{"create", births(plan.Create)},
		{"delete", names(plan.Delete)},
		{"update", names(plan.Update)},
	} {
		if act[1] != "" || act[0] == "create" && len(plan.Create) > 0 {
			words = append(words, act[0]+" "+act[1])
		}
	}
	if plan.Backward {
		words = append(words, "back")
	}
	if c := codes(plan); c != "" {
		words = append(words, "("+c+")")
	}
	return strings.Join(words, " ")
}
