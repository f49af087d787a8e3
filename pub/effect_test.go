package pub_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/pub"
)

func requests(pairs ...string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: amounts(pairs...)}
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// resources sets requests of the container main.
func resources(pairs ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = requests(pairs...) }
}

// onResize sets the resize policy of the container main.
func onResize(name corev1.ResourceName, policy corev1.ResourceResizeRestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: policy}}
	}
}

// withInit adds an init container, which is a native sidecar or not.
func withInit(sidecar bool) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		c := corev1.Container{Name: "first", Image: "init:1"}
		if sidecar {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = []corev1.Container{c}
	}
}

// fed has an environment variable from an annotation and one from a label.
func fed(pod *corev1.Pod) {
	for name, path := range map[string]string{"A": "metadata.annotations['config']", "B": "metadata.labels['mode']"} {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{
			Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}},
		})
	}
}

func spec(change func(*corev1.PodSpec)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { change(&pod.Spec) }
}

// A field that an update may change is here once at least.
func TestEffect(t *testing.T) {
	daemon := pub.Policy{Installed: inplace.Installation{EnvDaemon: true}}
	type edits []func(*corev1.Pod)
	cpu := resources("cpu", "1")
	cases := map[string]struct {
		why         string
		have        edits
		change      edits
		subresource string
		policy      pub.Policy
		want        pub.Operation
	}{
		"nothing": {why: "nothing happens", want: pub.Harmless},
		"image": {
			why: "the container restarts", change: edits{image("web:2")}, want: pub.Update,
		},
		"image, another name of it": {
			why: "the kubelet compares names", have: edits{image("web")}, change: edits{image("web:latest")}, want: pub.Update,
		},
		"image of an init container": {
			why:    "it has completed",
			have:   edits{withInit(false)},
			change: edits{spec(func(s *corev1.PodSpec) { s.InitContainers[0].Image = "init:2" })},
			want:   pub.Harmless,
		},
		"image of a native sidecar": {
			why:    "the container restarts",
			have:   edits{withInit(true)},
			change: edits{spec(func(s *corev1.PodSpec) { s.InitContainers[0].Image = "init:2" })},
			want:   pub.Update,
		},
		"toleration": {
			why:    "no running pod moves for it",
			change: edits{spec(func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Operator: "Exists"}} })},
			want:   pub.Harmless,
		},
		"scheduling gate": {
			why:    "the pod does not run yet",
			have:   edits{spec(func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })},
			change: edits{spec(func(s *corev1.PodSpec) { s.SchedulingGates = nil })},
			want:   pub.Harmless,
		},
		"node selector": {
			why:    "it may change while the pod is gated",
			change: edits{spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"a": "b"} })},
			want:   pub.Harmless,
		},
		"affinity": {
			why:    "it may change while the pod is gated",
			change: edits{spec(func(s *corev1.PodSpec) { s.Affinity = &corev1.Affinity{} })},
			want:   pub.Harmless,
		},
		"grace period": {
			why:    "it says how long a deletion takes",
			change: edits{spec(func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = ptr.To[int64](1) })},
			want:   pub.Harmless,
		},
		"deadline": {
			why:    "the pod ends",
			change: edits{spec(func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](1) })},
			want:   pub.Update,
		},
		"a field that this package does not see": {
			why:    "what is unknown is not harmless",
			change: edits{spec(func(s *corev1.PodSpec) { s.HostNetwork = true })},
			want:   pub.Update,
		},
		"another container": {
			why: "what is unknown is not harmless", change: edits{withInit(true)}, want: pub.Update,
		},
		"label": {
			why: "15: metadata does not count", change: edits{label("a", "b")}, want: pub.Harmless,
		},
		"annotation": {
			why: "15: metadata does not count", change: edits{annotation("a", "b")}, want: pub.Harmless,
		},
		"unavailable label": {
			why: "15: the pod counts as unavailable", change: edits{label("unavailable-pod.kruise.io/x", "")}, want: pub.Update,
		},
		"another unavailable label": {
			why:    "the pod counted as unavailable before",
			have:   edits{label("unavailable-pod.kruise.io/x", "")},
			change: edits{label("unavailable-pod.kruise.io/y", "")},
			want:   pub.Harmless,
		},
		"metadata that feeds no container": {
			why:    "no container restarts",
			have:   edits{fed},
			change: edits{annotation("other", "b")},
			policy: daemon,
			want:   pub.Harmless,
		},
		"annotation that feeds a container": {
			why:    "the daemon restarts the container",
			have:   edits{fed},
			change: edits{annotation("config", "b")},
			policy: daemon,
			want:   pub.Update,
		},
		"label that feeds a container": {
			why:    "the daemon restarts the container",
			have:   edits{fed},
			change: edits{label("mode", "b")},
			policy: daemon,
			want:   pub.Update,
		},
		"metadata that feeds, without a daemon": {
			why:    "nothing restarts the container",
			have:   edits{fed},
			change: edits{annotation("config", "b")},
			want:   pub.Harmless,
		},
		"status": {
			why: "the subresource changes no spec", change: edits{image("web:2")}, subresource: "status", want: pub.Harmless,
		},
		"binding": {
			why: "the pod does not run yet", change: edits{image("web:2")}, subresource: "binding", want: pub.Harmless,
		},
		"debug container": {
			why:         "no container restarts",
			change:      edits{spec(func(s *corev1.PodSpec) { s.EphemeralContainers = []corev1.EphemeralContainer{{}} })},
			subresource: "ephemeralcontainers",
			want:        pub.Harmless,
		},

		"20: cpu": {
			why: "the container goes on", have: edits{cpu}, change: edits{resources("cpu", "2")}, want: pub.Resize,
		},
		"cpu by the subresource": {
			why:         "workloads resize by it",
			have:        edits{cpu},
			change:      edits{resources("cpu", "2")},
			subresource: "resize",
			want:        pub.Resize,
		},
		"cpu with the same amount": {
			why: "1000m is 1", have: edits{cpu}, change: edits{resources("cpu", "1000m")}, want: pub.Harmless,
		},
		"cpu, NotRequired": {
			why:    "the container goes on",
			have:   edits{cpu, onResize("cpu", corev1.NotRequired)},
			change: edits{resources("cpu", "2")},
			want:   pub.Resize,
		},
		"memory added": {
			why:    "an amount that appears is a change of it",
			have:   edits{cpu},
			change: edits{resources("cpu", "1", "memory", "1Gi")},
			want:   pub.Resize,
		},
		"cpu and a toleration": {
			why:    "the toleration is harmless",
			have:   edits{cpu},
			change: edits{resources("cpu", "2"), spec(func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{}} })},
			want:   pub.Resize,
		},
		"21: another class": {why: "the class of service changes", change: edits{cpu}, want: pub.Update},
		"21: storage": {
			why:    "only cpu and memory can be resized",
			have:   edits{cpu},
			change: edits{resources("cpu", "1", "ephemeral-storage", "1Gi")},
			want:   pub.Update,
		},
		"21: static": {
			why:    "the kubelet has the pod from a file",
			have:   edits{cpu, annotation("kubernetes.io/config.source", "file")},
			change: edits{resources("cpu", "2")},
			want:   pub.Update,
		},
		"from the API server": {
			why:    "that is no static pod",
			have:   edits{cpu, annotation("kubernetes.io/config.source", "api")},
			change: edits{resources("cpu", "2")},
			want:   pub.Resize,
		},
		"21: RestartContainer": {
			why:    "the container restarts",
			have:   edits{cpu, onResize("cpu", corev1.RestartContainer)},
			change: edits{resources("cpu", "2")},
			want:   pub.Update,
		},
		"21: RestartContainer for the rest": {
			why:    "memory does not restart the container",
			have:   edits{resources("cpu", "1", "memory", "1Gi"), onResize("cpu", corev1.RestartContainer)},
			change: edits{resources("cpu", "1", "memory", "2Gi")},
			want:   pub.Resize,
		},
		"21: an unavailable label added": {
			why:    "the pod counts as unavailable",
			have:   edits{cpu},
			change: edits{resources("cpu", "2"), label("unavailable-pod.kruise.io/x", "")},
			want:   pub.Update,
		},
		"cpu and image": {
			why:    "the container restarts",
			have:   edits{cpu},
			change: edits{resources("cpu", "2"), image("web:2")},
			want:   pub.Update,
		},
		"resources of a native sidecar": {
			why:    "only regular containers count for a resize",
			have:   edits{cpu, withInit(true)},
			change: edits{spec(func(s *corev1.PodSpec) { s.InitContainers[0].Resources = requests("cpu", "2") })},
			want:   pub.Update,
		},
		"resources of the pod": {
			why:    "only regular containers count for a resize",
			have:   edits{cpu},
			change: edits{spec(func(s *corev1.PodSpec) { s.Resources = ptr.To(requests("cpu", "2")) })},
			want:   pub.Update,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := newPod("a", c.have...)
			after := before.DeepCopy()
			for _, change := range c.change {
				change(after)
			}
			kept := before.DeepCopy()
			if got := pub.Effect(before, after, c.subresource, c.policy); got != c.want {
				t.Errorf("%s: got %q, want %q", c.why, got, c.want)
			}
			if pub.Effect(before, before.DeepCopy(), c.subresource, c.policy) != pub.Harmless {
				t.Error("no change has an effect")
			}
			if !equal(kept, before) {
				t.Error("the pod was changed")
			}
		})
	}
	if pub.Effect(nil, newPod("a"), "", pub.Policy{}) != pub.Harmless ||
		pub.Effect(newPod("a"), nil, "", pub.Policy{}) != pub.Harmless {
		t.Error("an update needs both pods")
	}
}
