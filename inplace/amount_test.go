package inplace_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// storing rounds a pod's amounts up to thousandths, as the API server does with every pod that it stores.
func storing(pod *corev1.Pod) *corev1.Pod {
	for i := range pod.Spec.Containers {
		for _, list := range []corev1.ResourceList{
			pod.Spec.Containers[i].Resources.Limits, pod.Spec.Containers[i].Resources.Requests,
		} {
			for name, q := range list {
				list[name] = *resource.NewMilliQuantity(thousandths(q), q.Format)
			}
		}
	}
	return pod
}

// thousandths is the oracle of rounding, by whole numbers: billionths, rounded up.
func thousandths(q resource.Quantity) int64 {
	nano := q.ScaledValue(resource.Nano)
	return (nano + 999_999) / 1_000_000
}

// An amount finer than a thousandth is no change where the API server stores the same amount, and is resized to what
// the API server stores.
func TestDiffRoundsAmounts(t *testing.T) {
	sized := func(cpu string) *corev1.PodTemplateSpec {
		return template(container("c1", "app:1", requests("cpu", cpu, "memory", "1Gi"), limits("cpu", "1")))
	}
	for name, p := range map[string]inplace.Policy{"fixed": {}, "replaced": {Resources: inplace.ResourcesReplaced}} {
		change, err := inplace.Diff(sized("63m"), sized("62.5m"), p)
		if err != nil || !change.Empty() {
			t.Errorf("%s: %v %v", name, change, err)
		}
	}
	change, err := inplace.Diff(sized("100m"), sized("62.5m"), inplace.Policy{Resources: inplace.ResourcesReplaced})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]corev1.ResourceRequirements{"c1": {Requests: amounts("cpu", "63m")}},
		change.Resources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A resize that was applied is not asked for again, whatever amount the user or an older state wrote.
func TestResizeRoundsAmounts(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		draw := func() string {
			return []string{"62.5m", "63m", "62m", "62500u", "62000001n", "100m", "1", "0.0005"}[random.IntN(8)]
		}
		before, after := draw(), draw()
		change := &inplace.Change{Resources: map[string]corev1.ResourceRequirements{"c1": {Requests: amounts("cpu", after)}}}
		u := inplace.Update{Change: change, Revision: "web-2"}
		if random.IntN(2) == 0 {
			u.GraceSeconds = 1
		}
		p := inplace.Policy{
			Resources: inplace.ResourcesReplaced, Unready: inplace.UnreadyAlways,
		}
		u.Pod = storing(running(template(container("c1", "app:1", requests("cpu", before))), "web-1"))
		now, resizes := noon(), 0
		for writes := 0; ; writes++ {
			action, err := inplace.Next(u, p, now)
			if err != nil {
				t.Fatal(seed, err)
			}
			if action.Verdict == inplace.Wait && len(action.Notes) > 0 && action.Notes[0].Code == inplace.NoteGrace {
				now = now.Add(action.After)
				continue
			}
			if action.Verdict != inplace.Write {
				break
			}
			if writes > 6 {
				t.Fatalf("seed %d: %s to %s: writes without end: %v", seed, before, after, u.Pod.Spec.Containers[0].Resources)
			}
			if action.Write.Subresource == write.Resize {
				resizes++
			}
			u.Pod = storing(applied(t, u.Pod, action))
		}
		old, wanted := resource.MustParse(before), resource.MustParse(after)
		if got := u.Pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(); got != thousandths(wanted) {
			t.Fatalf("seed %d: %s to %s: the pod has %dm", seed, before, after, got)
		}
		if want := thousandths(old) != thousandths(wanted); want != (resizes == 1) || resizes > 1 {
			t.Fatalf("seed %d: %s to %s: %d resizes", seed, before, after, resizes)
		}
	}
}

// A state that an older release or the reference wrote may hold an amount that the API server rounds.
func TestStoredAmountIsRounded(t *testing.T) {
	pod := storing(running(template(container("c1", "app:1", requests("cpu", "63m"))), "web-2"))
	pod.Annotations = map[string]string{
		kruise.InPlaceUpdateStateKey: fmt.Sprintf(`{"revision":"web-2","updateTimestamp":%q}`,
			noon().Format("2006-01-02T15:04:05Z")),
		kruise.InPlaceUpdateGraceKey: `{"revision":"web-2","graceSeconds":1,"containerResources":{"c1":{"requests":{"cpu":"62500u"}}}}`,
	}
	action, err := inplace.Next(inplace.Update{Pod: pod}, inplace.Policy{}, noon().AddDate(0, 0, 1))
	if err != nil || action.Verdict != inplace.Write || action.Write.Subresource != write.Main {
		t.Errorf("%+v %v", action, err)
	}
}
