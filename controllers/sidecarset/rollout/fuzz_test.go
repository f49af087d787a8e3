package rollout_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

// FuzzAnnotations: whatever stands in the annotations and the condition of a pod, there is a plan, and what it writes
// can be read.
func FuzzAnnotations(f *testing.F) {
	f.Add(`{"s":{"hash":"x"}}`, `{"s":{"hash":"x"}}`, `s`, `{"s":{"lastContainerStatuses":{"x-1":{"imageID":"y"}}}}`,
		`{"x":"x-1"}`, `{"s":false}`)
	f.Add(`{"s":"x","z":null}`, `{"s":"x"}`, `s,,z`, `{"s":null}`, `{"x":"x-2"}`, `{}`)
	f.Add(`null`, `[]`, `,s`, `{"s":{"lastContainerStatuses":null}}`, `{"x":""}`, `null`)
	f.Add(``, ``, ` s`, ``, ``, ``)
	before := sidecarSet("s", hot("x", "x:1"), cold("mesh", "mesh:1"))
	after := edited(before, image("x:2"))
	f.Fuzz(func(t *testing.T, hash, bare, list, state, working, message string) {
		pod := podOf("a", before)
		for key, value := range map[string]string{
			kruise.SidecarSetHashKey: hash, kruise.SidecarSetHashWithoutImageKey: bare, kruise.SidecarSetInjectedListKey: list,
			kruise.SidecarSetInPlaceUpdateStateKey: state, kruise.SidecarSetWorkingHotUpgradeContainerKey: working,
		} {
			if value != "keep" {
				pod.Annotations[key] = value
			}
		}
		setCondition(pod, corev1.PodCondition{
			Type: kruise.SidecarSetUpgradable, Status: corev1.ConditionFalse, Message: message,
		})
		pass, _ := rollout.Plan(input(after, pod))
		plan := pass.Result()
		for _, c := range append(plan.Resets, plan.Updates...) {
			fresh, err := appliedTo(pod, c)
			if err != nil {
				t.Fatal(err)
			}
			written := annotationsOf(c)
			for _, key := range []string{
				kruise.SidecarSetHashKey, kruise.SidecarSetInPlaceUpdateStateKey, kruise.SidecarSetWorkingHotUpgradeContainerKey,
			} {
				if text := fresh.Annotations[key]; text != "" && json.Unmarshal([]byte(text), &map[string]any{}) != nil &&
					written[key] != "" {
					t.Errorf("%s: %s", key, text)
				}
			}
			for _, mark := range pass.Answer(noon(), c, fresh, nil) {
				if fresh, err = appliedTo(fresh, mark); err != nil {
					t.Fatal(err)
				}
			}
			again, err := rollout.Plan(input(after, fresh))
			if updates := again.Result().Updates; err == nil && len(plan.Updates) > 0 && len(updates) > 0 {
				t.Errorf("what was updated is updated again: %v", annotationsOf(updates[0]))
			}
		}
		for _, m := range plan.Marks {
			if _, err := appliedTo(pod, m); err != nil {
				t.Fatal(err)
			}
		}
		_ = rollout.Switching(after, pod)
	})
}
