package stored_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/claims"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/launch"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/pub"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/spread"
	"github.com/kruisekit/kruisekit/test/objects"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/eligible"
	"github.com/kruisekit/kruisekit/write"
)

func noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// readings are what the reconcilers decide about a pod of their cache.
func readings(pod *corev1.Pod) map[string]any {
	all := map[string]any{
		"first probe": podprobe.IsProbed(pod), "node": eligible.NodeOf(pod), "stamp": pub.Stamp(pod),
		"available": pub.Available(pod, pub.Policy{}),
		"pending":   launch.Pending(pod, launch.Policy{}), "launch": launch.Next(launch.Input{Pod: pod}),
		"sets":          rollout.Sets(pod),
		"unschedulable": spread.IsUnschedulable(pod), "finishes": finish.Concerns(pod), "active": pub.Active(pod),
		"exempt": pub.Exempt(pod),
		"mounts": claims.Mounts(&pod.Spec, []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}),
		"finish": text(finish.Next(finish.Input{Pod: pod, Now: noon()})), "ready": lifecycle.Ready(pod, noon()),
		"kept": eligible.Compile(&pod.Spec, eligible.Options{Cordons: true, Requests: true}).Check(node()),
		"ends": workload.IsFinished(pod), "earlier": subset.Active(pod),
	}
	all["scale"], all["wait"] = scale.Available(pod, 10, noon())
	all["stuck"], all["is stuck"] = workload.Stuck(pod)
	all["score"], all["suits"] = subset.Score(pod, node(), &v1beta1.WorkloadSpreadSubset{
		RequiredNodeSelector: &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"},
		}}},
		Patch: runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"a":"b"}}}`)},
	})
	request := &v1beta1.ContainerRecreateRequest{Spec: v1beta1.ContainerRecreateRequestSpec{PodName: pod.Name}}
	for i := range pod.Spec.Containers {
		request.Spec.Containers = append(request.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{
			Name: pod.Spec.Containers[i].Name,
		})
	}
	admitted, faults := containerrestart.Admit(request, pod, node())
	all["restart"], all["faults"] = admitted, faults
	update(pod, all)
	return all
}

// update adds what in-place updates decide.
func update(pod *corev1.Pod, all map[string]any) {
	value := "new"
	changes := map[string]*inplace.Change{"nothing": {}, "metadata": {Metadata: inplace.Metadata{
		Labels: map[string]*string{"app": &value}, Annotations: map[string]*string{"fed": &value},
	}}}
	for i := range pod.Spec.Containers {
		name := pod.Spec.Containers[i].Name
		changes["image "+name] = &inplace.Change{Images: map[string]string{name: "new:1"}}
		changes["resources "+name] = &inplace.Change{Resources: map[string]corev1.ResourceRequirements{
			name: {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
		}}
		changes["fed "+name] = &inplace.Change{
			Env: []string{name}, RefMetadata: map[string]metav1.ObjectMeta{name: {Annotations: map[string]string{"fed": "new"}}},
		}
	}
	for why, policy := range map[string]inplace.Policy{"safe": {}, "env": {Env: inplace.EnvRestart}} {
		all[why+" completed"], all[why+" note"] = inplace.Completed(pod, policy)
		all[why+" goes on"] = next(inplace.Update{Pod: pod}, policy)
		for name, change := range changes {
			all[why+" "+name] = next(inplace.Update{Pod: pod, Change: change, Revision: "new"}, policy)
		}
	}
}

func next(u inplace.Update, p inplace.Policy) string {
	action, err := inplace.Next(u, p, noon())
	written := ""
	if action.Write != nil {
		written = data(action.Write)
		action.Write = nil
	}
	return fmt.Sprintf("%+v %s %v", action, written, err)
}

func data(w *write.Write) string {
	body, err := w.Data()
	return fmt.Sprintf("%s %s %s %v", w.Verb, w.Subresource, body, err)
}

func text(v any) string {
	body, err := json.Marshal(v)
	return fmt.Sprint(string(body), err)
}

func node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"zone": "a"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}},
	}
}

// What a reconciler decides about a lean pod is what it decides about the whole one.
func TestLaw(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	random, n := rand.New(rand.NewPCG(seed, 1)), 0
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		var list corev1.PodList
		objects.Recorded(t, step+"/pods.yaml", &list)
		for i := range list.Items {
			for range 3 {
				pod := list.Items[i].DeepCopy()
				furnish(random, pod)
				slim := pod.DeepCopy()
				stored.LeanPod(slim)
				want, got := readings(pod), readings(slim)
				if n++; !reflect.DeepEqual(want, got) {
					t.Fatalf("%s/%s (-whole +lean):\n%s", step, pod.Name, cmp.Diff(want, got))
				}
				again := slim.DeepCopy()
				if stored.LeanPod(again); !reflect.DeepEqual(slim, again) {
					t.Fatalf("%s/%s: a lean pod changes:\n%s", step, pod.Name, cmp.Diff(slim, again))
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("compared %d pods", n)
	}
}

// furnish adds to a pod what users may have there.
func furnish(random *rand.Rand, pod *corev1.Pod) {
	maybe := func(do func()) {
		if random.IntN(2) == 0 {
			do()
		}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maybe(func() { pod.Annotations["fed"] = "old" })
	maybe(func() { pod.Spec.NodeSelector = map[string]string{"zone": []string{"a", "b"}[random.IntN(2)]} })
	maybe(func() { pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })
	maybe(func() { pod.Spec.TerminationGracePeriodSeconds = new(int64) })
	maybe(func() { pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")} })
	maybe(func() {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}})
	})
	maybe(func() { pod.Spec.NodeName = ""; eligible.Pin(&pod.Spec, "node-1") })
	maybe(func() {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Args: []string{"x"}, Env: []corev1.EnvVar{{Name: kruise.EphemeralContainerEnvKey, Value: "job"}},
		}}}
		pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{
			Name: "debug", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	})
	for i := range pod.Spec.Containers {
		furnishContainer(random, pod, &pod.Spec.Containers[i])
	}
	maybe(func() { recordRuntime(random, pod) })
}

func furnishContainer(random *rand.Rand, pod *corev1.Pod, c *corev1.Container) {
	c.Args, c.WorkingDir = []string{"--verbose"}, "/"
	barrier := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: launch.BarrierName(pod.Name)},
		Key:                  "p_" + strconv.Itoa(random.IntN(3)),
	}}
	fed := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['fed']"}}
	for _, e := range []corev1.EnvVar{
		{Name: "PLAIN", Value: "x"},
		{Name: "FED", ValueFrom: fed},
		{Name: "FED", Value: "twice"},
		{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: kruise.ContainerLaunchBarrierEnvName, ValueFrom: barrier},
		{Name: kruise.SidecarInjectedEnvName, Value: "true"},
		{Name: kruise.TerminateSidecarEnvName, Value: "true"},
		{Name: kruise.TerminateSidecarWithImageEnvName, Value: "exit:1"},
		{Name: kruise.TerminateSidecarIgnoreExitCodeEnvName, Value: "true"},
	} {
		if random.IntN(3) == 0 {
			c.Env = append(c.Env, e)
		}
	}
	if random.IntN(2) == 0 {
		c.Lifecycle = &corev1.Lifecycle{
			PreStop:   &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"stop"}}},
			PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"start"}}},
		}
		c.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 80}}
	}
	if random.IntN(2) == 0 {
		c.Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("5Mi"),
		}
		c.ResizePolicy = []corev1.ContainerResizePolicy{{
			ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer,
		}}
	}
}

// recordRuntime has a daemon record the containers, with the hashes of a kubelet of some version, or others.
func recordRuntime(random *rand.Rand, pod *corev1.Pod) {
	var set kruise.RuntimeContainerMetaSet
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		meta := kruise.RuntimeContainerMeta{Name: s.Name, ContainerID: s.ContainerID}
		for j := range pod.Spec.Containers {
			if c := &pod.Spec.Containers[j]; c.Name == s.Name {
				later, older, _ := inplace.PlainHashes(c)
				meta.Hashes.PlainHash = []uint64{later, older, older, 7}[random.IntN(4)]
				meta.Hashes.ExtractedEnvFromMetadataHash, _ = inplace.EnvHash(c, pod.Labels, pod.Annotations)
			}
		}
		set.Containers = append(set.Containers, meta)
		s.ImageID = "" // so that the record alone tells what runs
	}
	body, _ := json.Marshal(set)
	pod.Annotations[kruise.RuntimeContainerMetaKey] = string(body)
}

// Of two variables with a name the last one has effect, so that both stay.
func TestEnvironment(t *testing.T) {
	fed := corev1.EnvVar{
		Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['a']"}},
	}
	got := stored.LeanEnvironment([]corev1.EnvVar{{Name: "B", Value: "b"}, fed, {Name: "A", Value: "a"}, {Name: "C"}})
	if diff := cmp.Diff([]corev1.EnvVar{fed, {Name: "A", Value: "a"}}, got); diff != "" {
		t.Error(diff)
	}
	if got := stored.LeanEnvironment([]corev1.EnvVar{{Name: "B"}}); got != nil {
		t.Errorf("kept %v", got)
	}
}
