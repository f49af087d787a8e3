package daemon

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestManagerOptions(t *testing.T) {
	long := strings.Repeat("n", 64)
	cases := map[string]struct {
		why, node string
		o         Options
		want      map[string]string
	}{
		"all": {"each kind by what API servers can select by", "node-a", Options{}, map[string]string{
			"NodeImage":                "metadata.name=node-a",
			"NodePodProbe":             "metadata.name=node-a",
			"ContainerRecreateRequest": "crr.apps.kruise.io/active=true,crr.apps.kruise.io/node-name=node-a",
			"Pod":                      "spec.nodeName=node-a",
		}},
		"without pods and probes": {
			why:  "the gates are off",
			node: "node-a",
			o:    Options{WithoutPods: true, WithoutProbes: true},
			want: map[string]string{
				"NodeImage":                "metadata.name=node-a",
				"ContainerRecreateRequest": "crr.apps.kruise.io/active=true,crr.apps.kruise.io/node-name=node-a",
			},
		},
		"a long name": {
			why:  "which fits in no label: an API server would refuse to select by it",
			node: long,
			o:    Options{},
			want: map[string]string{
				"NodeImage": "metadata.name=" + long, "NodePodProbe": "metadata.name=" + long, "Pod": "spec.nodeName=" + long,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mo, err := ManagerOptions(c.node, c.o)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for object, by := range mo.Cache.ByObject {
				kinds, _, err := mo.Scheme.ObjectKinds(object)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case by.Label != nil && by.Field == nil:
					got[kinds[0].Kind] = by.Label.String()
				case by.Field != nil && by.Label == nil:
					got[kinds[0].Kind] = by.Field.String()
				default:
					t.Errorf("%s is selected by %v and %v", kinds[0].Kind, by.Label, by.Field)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
	if _, err := ManagerOptions("", Options{}); err == nil {
		t.Error("a daemon of no node is accepted")
	}
}

func TestSlimPod(t *testing.T) {
	env := []corev1.EnvVar{
		{
			Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['a']"}},
		},
		{
			Name:      "C",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['c']"}},
		},
	}
	hook := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	meta := metav1.ObjectMeta{
		Namespace:         "shop",
		Name:              "web",
		UID:               "42",
		ResourceVersion:   "7",
		Labels:            map[string]string{"a": "b"},
		Annotations:       map[string]string{"c": "d"},
		OwnerReferences:   []metav1.OwnerReference{{Name: "set"}},
		DeletionTimestamp: &metav1.Time{},
		Finalizers:        []string{"f"},
	}
	status := corev1.PodStatus{
		Phase:                 corev1.PodRunning,
		PodIP:                 "10.0.0.1",
		Conditions:            []corev1.PodCondition{{Type: "InPlaceUpdateReady"}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://0"}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "proxy"}},
	}
	full := &corev1.Pod{ObjectMeta: meta, Status: status, Spec: corev1.PodSpec{
		NodeName:                      "node-a",
		HostNetwork:                   true,
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: ptr.To[int64](9),
		Volumes:                       []corev1.Volume{{Name: "data"}},
		Affinity:                      &corev1.Affinity{},
		Tolerations:                   []corev1.Toleration{{Operator: "Exists"}},
		EphemeralContainers:           []corev1.EphemeralContainer{{}},
		InitContainers: []corev1.Container{{
			Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Command: []string{"x"},
		}},
		Containers: []corev1.Container{{
			Name:          "web",
			Image:         "web:1",
			Env:           env,
			Lifecycle:     hook,
			Ports:         []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
			VolumeMounts:  []corev1.VolumeMount{{Name: "data"}},
			LivenessProbe: &corev1.Probe{},
			Args:          []string{"y"},
		}},
	}}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	full.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug"}}
	full.Spec.Containers[0].Env = append([]corev1.EnvVar{{Name: "PLAIN", Value: "x"}}, env...)
	full.Labels, full.Annotations = map[string]string{"a": "b", "unread": "x"}, map[string]string{"c": "d", "unread": "x"}
	want := &corev1.Pod{ObjectMeta: meta, Status: status, Spec: corev1.PodSpec{
		NodeName:                      "node-a",
		HostNetwork:                   true,
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: ptr.To[int64](9),
		InitContainers: []corev1.Container{{
			Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		}},
		Containers: []corev1.Container{{
			Name:      "web",
			Image:     "web:1",
			Env:       env,
			Lifecycle: hook,
			Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
		}},
	}}
	for _, time := range []string{"first", "second"} { // informers may call it twice
		slim, err := slimPod(full)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, slim); diff != "" {
			t.Errorf("the %s time (-want +got):\n%s", time, diff)
		}
	}
}
