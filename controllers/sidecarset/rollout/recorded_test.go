package rollout_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/lifecycle"
)

func recorded(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("../../../test/compat/testdata/recorded/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// recordedSet is the set that a pod of a step names.
func recordedSet(t *testing.T, step, name string) *v1beta1.SidecarSet {
	t.Helper()
	list := v1beta1.SidecarSetList{}
	recorded(t, step+"/sidecarsets.v1beta1.yaml", &list)
	i := slices.IndexFunc(list.Items, func(s v1beta1.SidecarSet) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no set %s", name)
	}
	return &list.Items[i]
}

func recordedPod(t *testing.T, step, name string) *corev1.Pod {
	t.Helper()
	list := corev1.PodList{}
	recorded(t, step+"/pods.yaml", &list)
	i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no pod %s", name)
	}
	return &list.Items[i]
}

// TestRecordedTakeover: what a running reference had settled is left as it is, and counted alike.
func TestRecordedTakeover(t *testing.T) {
	for _, step := range []string{"1-created", "3-updated"} {
		for pod, name := range map[string]string{"meshed": "fixtures-mesh", "hot": "fixtures-hot"} {
			t.Run(step+"/"+pod, func(t *testing.T) {
				set := recordedSet(t, step, name)
				plan := compute(t, rollout.Input{
					Set: set, Revision: set.Status.LatestRevision, Pods: []*corev1.Pod{recordedPod(t, step, pod)}, Now: noon(),
				})
				if diff := cmp.Diff(set.Status, plan.Status); diff != "" {
					t.Errorf("status (-recorded +ours):\n%s", diff)
				}
				if n := len(plan.Updates) + len(plan.Resets) + len(plan.Marks); n != 0 {
					t.Errorf("%d writes of a pod that is settled", n)
				}
			})
		}
	}
}

// TestRecordedUpdate makes the writes that a running reference made: the update of each pod, and the end of the hot
// upgrade.
func TestRecordedUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		set, from, to string
		// version of the set when the reference wrote.
		version string
	}{
		"meshed": {set: "fixtures-mesh", from: "1-created", to: "2-updating"},
		"hot":    {set: "fixtures-hot", from: "1-created", to: "2-updating", version: "31334"},
	} {
		t.Run(name, func(t *testing.T) {
			set := recordedSet(t, c.to, c.set)
			want := recordedPod(t, c.to, name)
			if c.version != "" {
				set.ResourceVersion = c.version
			}
			in := rollout.Input{Set: set, Revision: set.Status.LatestRevision, Pods: []*corev1.Pod{recordedPod(t, c.from, name)}}
			in.Now = updatedAt(t, want, c.set)
			pass, err := rollout.Plan(in)
			if err != nil || len(pass.Result().Updates) != 1 {
				t.Fatalf("want the pod updated, got notes %v (%v)", pass.Notes(), err)
			}
			update := pass.Result().Updates[0]
			after := applied(update)
			sameWrite(t, want, after)
			marked := applied(pass.Answer(in.Now, update, after, nil)[0])
			if diff := cmp.Diff(lifecycle.ConditionOf(want, kruise.SidecarSetUpgradable),
				lifecycle.ConditionOf(marked, kruise.SidecarSetUpgradable)); diff != "" {
				t.Errorf("condition (-recorded +ours):\n%s", diff)
			}
		})
	}
	t.Run("flip", func(t *testing.T) {
		set, want := recordedSet(t, "2-updating", "fixtures-hot"), recordedPod(t, "3-updated", "hot")
		plan := compute(t, rollout.Input{
			Set: set, Revision: set.Status.LatestRevision, Pods: []*corev1.Pod{recordedPod(t, "2-updating", "hot")}, Now: noon(),
		})
		if len(plan.Resets) != 1 || len(plan.Updates) != 0 {
			t.Fatalf("%d ends of hot upgrades, %d updates", len(plan.Resets), len(plan.Updates))
		}
		sameWrite(t, want, applied(plan.Resets[0]))
	})
}

// sameWrite compares images, and the annotations of sets. That we also record which container was replaced is left out.
func sameWrite(t *testing.T, want, got *corev1.Pod) {
	t.Helper()
	read := func(pod *corev1.Pod) map[string]string {
		all := map[string]string{}
		for key, value := range pod.Annotations {
			if strings.Contains(key, "sidecarset") {
				all[key] = value
			}
		}
		for _, c := range pod.Spec.Containers {
			all["image of "+c.Name] = c.Image
		}
		states := map[string]kruise.InPlaceUpdateState{}
		if err := json.Unmarshal([]byte(pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey]), &states); err != nil {
			t.Fatal(err)
		}
		for _, state := range states {
			for name, last := range state.LastContainerStatuses {
				state.LastContainerStatuses[name] = kruise.InPlaceUpdateContainerStatus{ImageID: last.ImageID}
			}
		}
		data, err := json.Marshal(states)
		if err != nil {
			t.Fatal(err)
		}
		all[kruise.SidecarSetInPlaceUpdateStateKey] = string(data)
		return all
	}
	if diff := cmp.Diff(read(want), read(got)); diff != "" {
		t.Errorf("(-recorded +ours):\n%s", diff)
	}
}
