package launch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/launch"
)

func annotated(p *corev1.Pod, key, value string) *corev1.Pod {
	p.Annotations = map[string]string{key: value}
	return p
}

func env(p *corev1.Pod, container int, all ...corev1.EnvVar) *corev1.Pod {
	p.Spec.Containers[container].Env = all
	return p
}

func plain(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func TestInject(t *testing.T) {
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		want  []string // variables of the pod; nil where nothing is to be done
		notes []string
	}{
		"in order: each has one less than the one before": {
			pod:  annotated(newPod("a", "b", "c"), ordered, "Ordered"),
			want: []string{"a: " + bar(0), "b: " + bar(-1), "c: " + bar(-2)},
		},
		"priorities: the barrier comes last": {
			pod:  env(env(newPod("main", "c2"), 0, plain("TEST", "1")), 1, plain(priorityEnv, "10"), plain("TEST", "2")),
			want: []string{"main: TEST=1 " + bar(0), "c2: KRUISE_CONTAINER_PRIORITY=10 TEST=2 " + bar(10)},
		},
		"all the same: no container waits for another": {asking("5", "5", "5"), nil, nil},
		"one container: there is none to wait for":     {annotated(newPod("a"), ordered, "Ordered"), nil, nil},
		"one odd container: nothing is read of it":     {asking("abc"), nil, nil},
		"no container: the API server says so":         {annotated(newPod(), ordered, "Ordered"), nil, nil},
		"order before number: the position decides, and numbers are not read": {
			pod: annotated(asking("1", "2", "abc"), ordered, "Ordered"),
			want: []string{
				"a: KRUISE_CONTAINER_PRIORITY=1 " + bar(0), "b: KRUISE_CONTAINER_PRIORITY=2 " + bar(-1),
				"c: KRUISE_CONTAINER_PRIORITY=abc " + bar(-2),
			},
		},
		"the bounds: of 32 bits": {
			pod: asking("2147483647", "-2147483647"),
			want: []string{
				"a: KRUISE_CONTAINER_PRIORITY=2147483647 " + bar(2147483647),
				"b: KRUISE_CONTAINER_PRIORITY=-2147483647 " + bar(-2147483647),
			},
		},
		"the last counts: as in any environment": {
			pod:  env(newPod("a", "b"), 0, plain(priorityEnv, "x"), plain(priorityEnv, "1")),
			want: []string{"a: KRUISE_CONTAINER_PRIORITY=x KRUISE_CONTAINER_PRIORITY=1 " + bar(1), "b: " + bar(0)},
		},
		"injected before: a second pass does nothing": {pod: annotated(waiting("p_0", "p_-1"), ordered, "Ordered")},
		"injected otherwise: one was put in front by a later webhook": {
			pod: annotated(env(env(newPod("a", "b"), 0, plain("X", "")), 1, wait("web", "p_0"),
				plain("Y", ""), wait("web", "p_0")), ordered, "Ordered"),
			want:  []string{"a: X= " + bar(0), "b: " + bar(-1) + " Y="},
			notes: []string{"BarrierReplaced b"},
		},
		"injected twice: as the reference does where it is called again": {
			pod: annotated(env(env(newPod("a", "b"), 0, wait("web", "p_0"), wait("web", "p_0")), 1, wait("web", "p_-1")),
				ordered, "Ordered"),
			want:  []string{"a: " + bar(0), "b: " + bar(-1)},
			notes: []string{"BarrierReplaced a"},
		},
		"a copy of another pod: it would wait for the other's barrier, and never be looked at": {
			annotated2(env(env(newPod("a", "b"), 0, wait("old", "p_0")), 1, wait("old", "p_-1"))),
			[]string{"a: " + bar(0), "b: " + bar(-1)},
			[]string{"BarrierReplaced a", "BarrierReplaced b", "CompletedDropped web"},
		},
		"static: nothing can hold it up": {
			pod:   annotated(asking("1", "2"), "kubernetes.io/config.mirror", "x"),
			notes: []string{"StaticPod web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.pod.DeepCopy()
			got, faults := launch.Inject(c.pod, launch.Options{})
			if len(faults) > 0 {
				t.Fatal(faults.ToAggregate())
			}
			if diff := cmp.Diff(before, c.pod); diff != "" {
				t.Errorf("the input is changed (-want +got):\n%s", diff)
			}
			var made []string
			if got.Pod != nil {
				made = envs(got.Pod)
			}
			if diff := cmp.Diff(c.want, made); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.notes, codes(got.Notes)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if got.Pod == nil {
				return
			}
			if again, faults := launch.Inject(got.Pod, launch.Options{}); again.Pod != nil || faults != nil {
				t.Errorf("a second pass makes %v, %v", again, faults)
			}
			if _, is := got.Pod.Annotations[completedKey]; is {
				t.Error("a new pod is complete")
			}
		})
	}
}

func bar(priority int) string { return bars("web", priority) }

func annotated2(p *corev1.Pod) *corev1.Pod {
	p.Annotations = map[string]string{ordered: "Ordered", completedKey: "true"}
	return p
}

// Init containers of any kind take no part, and what is optional in a barrier is not.
func TestInjectLeavesTheRest(t *testing.T) {
	p := asking("1", "2")
	p.Spec.InitContainers = []corev1.Container{{Name: "i", Env: []corev1.EnvVar{plain(priorityEnv, "abc")}}}
	got, faults := launch.Inject(p, launch.Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := p.DeepCopy()
	for i, key := range []string{"p_1", "p_2"} {
		want.Spec.Containers[i].Env = append(want.Spec.Containers[i].Env, wait("web", key))
	}
	if diff := cmp.Diff(want, got.Pod); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What has only generateName gets its name now, since the barrier is called after it.
func TestInjectNames(t *testing.T) {
	long := strings.Repeat("n", 70)
	for name, c := range map[string]struct{ generate, want string }{
		"short": {"web-", "web-x7k2p"},
		"long":  {long, long[:58] + "x7k2p"},
	} {
		t.Run(name, func(t *testing.T) {
			p := asking("1", "2")
			p.Name, p.GenerateName = "", c.generate
			got, faults := launch.Inject(p, launch.Options{Suffix: "x7k2p"})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			if got.Pod.Name != c.want || got.Pod.GenerateName != c.generate ||
				!strings.HasSuffix(envs(got.Pod)[0], bars(c.want, 1)) {
				t.Errorf("%s, with %q", got.Pod.Name, envs(got.Pod))
			}
			if diff := cmp.Diff([]string{"NameCompleted " + c.want}, codes(got.Notes)); diff != "" {
				t.Error(diff)
			}
		})
	}
	p := newPod("a", "b")
	p.Name, p.GenerateName = "", "web-"
	if got, faults := launch.Inject(p, launch.Options{Suffix: "x7k2p"}); got.Pod != nil || faults != nil {
		t.Errorf("a pod without an order gets a name: %v %v", got, faults)
	}
}

func TestInjectFaults(t *testing.T) {
	from := corev1.EnvVar{
		Name: priorityEnv, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
	}
	unnamed := asking("1", "2")
	unnamed.Name = ""
	generated := unnamed.DeepCopy()
	generated.GenerateName = "web-"
	endless := asking("1", "2")
	endless.Name = strings.Repeat("n", 246)
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"a word: there is no order of words": {
			asking("abc", "1"),
			[]string{"spec.containers[0].env[0].value: Invalid value: \"abc\""},
		},
		"empty: a variable without a value": {
			env(newPod("a", "b"), 1, plain("X", ""), plain(priorityEnv, "")),
			[]string{"spec.containers[1].env[1].value"},
		},
		"too large: for 32 bits": {asking("2147483648", "2"), []string{"spec.containers[0].env[0].value"}},
		"from elsewhere: its value is not known": {
			env(newPod("a", "b"), 0, from),
			[]string{"spec.containers[0].env[0].valueFrom: Forbidden"},
		},
		"no name: nothing to call the barrier after": {unnamed, []string{"metadata.name: Required"}},
		"no suffix: the caller's fault":              {generated, []string{"metadata.name: Internal error"}},
		"no room: the barrier could never be made":   {endless, []string{"metadata.name: Too long"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := launch.Inject(c.pod, launch.Options{})
			if got.Pod != nil || len(faults) != len(c.want) {
				t.Fatalf("%v, %v", got.Pod, faults)
			}
			for i, want := range c.want {
				if !strings.Contains(faults[i].Error(), want) {
					t.Errorf("%s, want %s", faults[i], want)
				}
			}
		})
	}
}
