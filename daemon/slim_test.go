package daemon

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/test/objects"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A node has 110 pods and a daemon 128 MiB: whatever is large in a pod, the cache holds little of it.
func TestSlimPodsAreSmall(t *testing.T) {
	const many, most = 3, 128 << 10
	list := func(format string) string {
		var all strings.Builder
		for n := 0; all.Len() < 1_400_000; n++ {
			fmt.Fprintf(&all, format+",", n)
		}
		return strings.TrimSuffix(all.String(), ",")
	}
	cases := map[string]string{
		"variables": `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","env":[` + list(`{"name":"A%x"}`) +
			`]}]}}`,
		"names": `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","env":[` +
			list(`{"name":"A%x","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}`) + `]}]}}`,
		"annotations": `{"metadata":{"name":"a","annotations":{` + list(`"a%x":""`) + `}}}`,
		"labels":      `{"metadata":{"name":"a","labels":{` + list(`"a%x":""`) + `}}}`,
		"hooks": `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","lifecycle":{"postStart":{"exec":{"command":[` +
			list(`"a%x"`) + `]}}}}]}}`,
		"volumes": `{"metadata":{"name":"a"},"spec":{"volumes":[` + list(`{"name":"a%x"}`) + `]}}`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			all := make([]any, many)
			before := heap()
			for i := range all {
				pod := &corev1.Pod{}
				if err := json.Unmarshal([]byte(text), pod); err != nil {
					t.Fatal(err)
				}
				all[i], _ = slimPod(pod)
			}
			each := (int64(heap()) - int64(before)) / many
			runtime.KeepAlive(all)
			runtime.KeepAlive(text)
			t.Logf("a pod of %d KiB is %d KiB in the cache", len(text)>>10, each>>10)
			if each > most {
				t.Errorf("a pod of %d KiB is %d KiB in the cache, want at most %d", len(text)>>10, each>>10, most>>10)
			}
		})
	}
}

// The parts decide about a slim pod what they decide about the whole one.
func TestSlimPodsDecide(t *testing.T) {
	n := 0
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		var list corev1.PodList
		objects.Recorded(t, step+"/pods.yaml", &list)
		for i := range list.Items {
			before, after := &list.Items[i], list.Items[i].DeepCopy()
			feed(after)
			slim, slimmed := before.DeepCopy(), after.DeepCopy()
			for _, pod := range []*corev1.Pod{slim, slimmed, slim, slimmed} { // informers may call it twice
				if _, err := slimPod(pod); err != nil {
					t.Fatal(err)
				}
			}
			n++
			if diff := cmp.Diff(decisions(t, before, after), decisions(t, slim, slimmed)); diff != "" {
				t.Errorf("%s/%s (-whole +slim):\n%s", step, after.Name, diff)
			}
		}
	}
	if n < 60 {
		t.Errorf("compared %d pods", n)
	}
}

// feed has labels and annotations feed variables of a pod, one of them twice.
func feed(pod *corev1.Pod) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["fed"], pod.Annotations["unread"] = "old", "x"
	from := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Env = append(c.Env, corev1.EnvVar{Name: "FED", ValueFrom: from("metadata.annotations['fed']")},
			corev1.EnvVar{Name: "PLAIN", Value: "x"}, corev1.EnvVar{Name: "APP", ValueFrom: from("metadata.labels['app']")})
		if i > 0 {
			c.Env = append(c.Env, corev1.EnvVar{Name: "FED", Value: "twice"})
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: kruise.ContainerLaunchBarrierEnvName, ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: fmt.Sprintf("p_%d", i)},
		}})
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionFalse,
	})
	pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{
		APIVersion: "example.com/v1", Kind: "Other", Name: "other",
	})
}

func decisions(t *testing.T, before, after *corev1.Pod) []any {
	t.Helper()
	all := []any{
		after.UID, after.Spec.NodeName, after.Spec.RestartPolicy, after.Spec.TerminationGracePeriodSeconds,
		after.Status.PodIP, after.DeletionTimestamp, after.Finalizers,
	}
	for _, env := range []bool{true, false} {
		all = append(all, containerrestart.Stale(nil, after, env), containerrestart.Stale(before, after, env))
		view := containerrestart.View{Pod: after, Env: env, Environments: map[string]map[string]string{}}
		for _, s := range after.Status.ContainerStatuses {
			view.Containers = append(view.Containers, containerrestart.Container{
				ID: s.ContainerID, Name: s.Name, State: containerrestart.StateRunning, Hash: 7, RestartCount: s.RestartCount,
			})
			view.Environments[s.ContainerID] = map[string]string{"FED": "new", "APP": "web"}
		}
		description, err := containerrestart.Describe(view)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, description)
	}
	for i := range after.Spec.Containers {
		c := &after.Spec.Containers[i]
		hash, err := inplace.EnvHash(c, after.Labels, after.Annotations)
		all = append(all, c.Name, c.Image, c.Ports, c.Lifecycle, hash, err)
	}
	return all
}
