package containerrestart_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/containerrestart"
)

// TestAdmitRefuses has all that is refused, in the order in which it is reported: no user waits for a request that
// cannot be carried out.
func TestAdmitRefuses(t *testing.T) {
	only := func(name string) func(*request) {
		return func(r *request) { r.Spec.Containers = r.Spec.Containers[:1]; r.Spec.Containers[0].Name = name }
	}
	cases := map[string]struct {
		ask    func(*request)
		pod    *corev1.Pod
		noNode bool
		want   string
	}{
		"empty pod name": {ask: func(r *request) { r.Spec.PodName = "" }, want: "spec.podName: Required"},
		"no containers":  {ask: func(r *request) { r.Spec.Containers = nil }, want: "spec.containers: Required"},
		"short deadline": {
			ask:  func(r *request) { r.Spec.ActiveDeadlineSeconds = ptr.To[int64](1) },
			want: "spec.activeDeadlineSeconds: Invalid value: 1: must be at least 3",
		},
		"negative grace": {
			ask:  func(r *request) { r.Spec.Strategy = &strategy{TerminationGracePeriodSeconds: ptr.To[int64](-1)} },
			want: "spec.strategy.terminationGracePeriodSeconds: Invalid",
		},
		"negative unready grace": {
			ask:  func(r *request) { r.Spec.Strategy = &strategy{UnreadyGracePeriodSeconds: ptr.To[int64](-1)} },
			want: "spec.strategy.unreadyGracePeriodSeconds: Invalid",
		},
		"unknown policy": {
			ask:  func(r *request) { r.Spec.Strategy = &strategy{FailurePolicy: "Retry"} },
			want: "spec.strategy.failurePolicy: Unsupported",
		},
		"all of these": {ask: func(r *request) {
			r.Spec = appsv1beta1.ContainerRecreateRequestSpec{ActiveDeadlineSeconds: ptr.To[int64](0)}
		}, want: "spec.podName, spec.containers, spec.activeDeadlineSeconds"},
		"no such pod": {pod: nil, want: "spec.podName: Not found"},
		"ended pod": {
			pod:  newPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			want: "spec.podName: Invalid value: \"web\": the pod has ended",
		},
		"terminating pod": {
			pod: newPod(func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(stamp(0)) }), want: "spec.podName: Invalid",
		},
		"pod on no node": {
			pod:  newPod(func(p *corev1.Pod) { p.Spec.NodeName = "" }),
			want: "spec.podName: Invalid value: \"web\": the pod is on no node",
		},
		"node is gone": {pod: newPod(), noNode: true, want: "spec.podName: Invalid value: \"web\": node n1"},
		"duplicate container": {
			ask:  func(r *request) { r.Spec.Containers[1].Name = "app" },
			pod:  newPod(),
			want: "spec.containers[1].name: Duplicate",
		},
		"a hook of the user": {
			ask:  func(r *request) { r.Spec.Containers[0].PreStop = &appsv1beta1.CRRProbeHandler{} },
			pod:  newPod(),
			want: "spec.containers[0].preStop: Forbidden",
		},
		"ports of the user": {
			ask:  func(r *request) { r.Spec.Containers[1].Ports = []corev1.ContainerPort{{}} },
			pod:  newPod(),
			want: "spec.containers[1].ports: Forbidden",
		},
		"a context of the user": {ask: func(r *request) {
			r.Spec.Containers[0].StatusContext = &appsv1beta1.ContainerRecreateRequestContainerContext{}
		}, pod: newPod(), want: "spec.containers[0].statusContext: Forbidden"},
		"unknown container": {ask: only("other"), pod: newPod(), want: "spec.containers[0].name: Not found"},
		"init container":    {ask: only("setup"), pod: newPod(), want: "spec.containers[0].name: Not found"},
		"container of no status": {
			pod:  newPod(func(p *corev1.Pod) { p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1] }),
			want: "spec.containers[1].name: Invalid",
		},
		"container that never ran": {
			pod:  newPod(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "" }),
			want: "spec.containers[0].name: Invalid",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := asked()
			if tc.ask != nil {
				tc.ask(r)
			}
			node := &corev1.Node{}
			if tc.noNode {
				node = nil
			}
			got, faults := containerrestart.Admit(r, tc.pod, node)
			if got != nil || len(faults) == 0 {
				t.Fatalf("Admit() = %v, %v", got, faults)
			}
			var byItself field.ErrorList
			if tc.pod == nil && tc.ask != nil {
				byItself = faults
			}
			if diff := cmp.Diff(byItself, containerrestart.Check(r)); diff != "" {
				t.Errorf("Check() (-want +got):\n%s", diff)
			}
			told := faults[0].Error()
			if len(faults) > 1 {
				told = strings.Join(paths(faults), ", ")
			}
			if !strings.HasPrefix(told, tc.want) {
				t.Errorf("refused with %q, want %q", told, tc.want)
			}
		})
	}
}

func paths(faults field.ErrorList) []string {
	all := make([]string, len(faults))
	for i, f := range faults {
		all[i] = f.Field
	}
	return all
}

// TestAdmitFills has what a request gets when it is made: labels to find it by, defaults, how its containers run now,
// and the hooks that a daemon has to run.
func TestAdmitFills(t *testing.T) {
	get := corev1.HTTPGetAction{Path: "/bye", Port: port("web")}
	cases := map[string]struct {
		why  string
		ask  func(*request)
		pod  *corev1.Pod
		node corev1.Node
		want func(*request)
	}{
		"plain": {why: "labels, defaults, and how the containers run", pod: newPod(), want: func(*request) {}},
		"given": {
			why: "what the user says stays", pod: newPod(),
			ask: func(r *request) {
				r.Labels = map[string]string{"team": "a"}
				r.Spec.Strategy = &strategy{FailurePolicy: "Ignore", TerminationGracePeriodSeconds: ptr.To[int64](0)}
			},
			want: func(r *request) {
				r.Labels["team"] = "a"
				r.Spec.Strategy = &strategy{FailurePolicy: "Ignore", TerminationGracePeriodSeconds: ptr.To[int64](0)}
			},
		},
		"virtual node": {
			why:  "no daemon of ours runs there",
			pod:  newPod(),
			node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"type": "virtual-kubelet"}}},
			want: func(r *request) { r.Labels["type"] = "virtual-kubelet" },
		},
		"other type of node": {
			why:  "the label is about one type only",
			pod:  newPod(),
			node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"type": "gpu"}}},
			want: func(*request) {},
		},
		"command": {
			why: "a hook is copied, ports are not needed", pod: newPod(preStop(0, execHook("sync"))),
			want: func(r *request) {
				r.Spec.Containers[0].PreStop = &appsv1beta1.CRRProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sync"}}}
			},
		},
		"request": {
			why: "its port is resolved later", pod: newPod(preStop(0, httpHook(get))),
			want: func(r *request) {
				r.Spec.Containers[0].PreStop = &appsv1beta1.CRRProbeHandler{HTTPGet: &get}
				r.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
			},
		},
		"connection": {
			why: "it cannot run, and fails later",
			pod: newPod(preStop(0, corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: port("web")}})),
			want: func(r *request) {
				r.Spec.Containers[0].PreStop = &appsv1beta1.CRRProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port("web")}}
			},
		},
		"sleep": {
			why:  "it has no place in a request",
			pod:  newPod(preStop(0, corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}})),
			want: func(*request) {},
		},
		"postStart alone": {why: "it is no matter of stopping", pod: newPod(func(p *corev1.Pod) {
			p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: ptr.To(execHook("hi"))}
		}), want: func(*request) {}},
		"native sidecar": {
			why: "it restarts like any other", pod: newPod(), ask: func(r *request) { r.Spec.Containers[1].Name = "mesh" },
			want: func(r *request) {
				r.Spec.Containers[1].Name, r.Spec.Containers[1].StatusContext.ContainerID = "mesh", id("mesh", 0)
			},
		},
		"no grace in the pod": {
			why:  "the daemon has a default",
			pod:  newPod(func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil }),
			want: func(r *request) { r.Spec.Strategy.TerminationGracePeriodSeconds = nil },
		},
		"ended by the sidecar terminator": {
			why: "its sidecars may still run", want: func(*request) {},
			pod: newPod(func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodSucceeded
				p.Status.Conditions = []corev1.PodCondition{{Type: kruise.SidecarTerminated}}
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := asked()
			want.Labels = map[string]string{
				activeLabel: "true", "crr.apps.kruise.io/node-name": "n1", "crr.apps.kruise.io/pod-uid": "u1",
			}
			want.Spec.Strategy = &strategy{FailurePolicy: "Fail", TerminationGracePeriodSeconds: ptr.To[int64](10)}
			for i, name := range []string{"app", "log"} {
				want.Spec.Containers[i].StatusContext = &appsv1beta1.ContainerRecreateRequestContainerContext{
					ContainerID: id(name, 0),
				}
			}
			tc.want(want)
			r := asked()
			if tc.ask != nil {
				tc.ask(r)
			}
			before := text(r) + text(tc.pod)
			got, faults := containerrestart.Admit(r, tc.pod, &tc.node)
			if faults != nil {
				t.Fatal(faults)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
			if text(r)+text(tc.pod) != before {
				t.Error("the request or the pod was changed")
			}
		})
	}
}

// TestCheckUpdate: what was admitted stays, since a daemon may have begun with it; so do the labels that lead to it.
func TestCheckUpdate(t *testing.T) {
	uid := appsv1beta1.ContainerRecreateRequestPodUIDKey
	cases := map[string]struct {
		change func(*request)
		want   string
	}{
		"nothing": {change: func(*request) {}},
		"status":  {change: func(r *request) { r.Status.Phase = completed }},
		"other metadata": {change: func(r *request) {
			delete(r.Labels, activeLabel)
			r.Labels["x"] = "y"
			r.Finalizers = []string{finalizer}
		}},
		"spec": {
			change: func(r *request) { r.Spec.TTLSecondsAfterFinished = ptr.To[int32](1) },
			want:   "spec: Forbidden: spec of ContainerRecreateRequest is immutable",
		},
		"label changed": {
			change: func(r *request) { r.Labels[uid] = "u2" },
			want:   "metadata.labels[crr.apps.kruise.io/pod-uid]: Forbidden: the label is immutable",
		},
		"label removed": {
			change: func(r *request) { delete(r.Labels, uid) },
			want:   "metadata.labels[crr.apps.kruise.io/pod-uid]: Forbidden: the label is immutable",
		},
		"no labels at all": {
			change: func(r *request) { r.Labels = nil },
			want: "[metadata.labels[crr.apps.kruise.io/pod-uid]: Forbidden: the label is immutable, " +
				"metadata.labels[crr.apps.kruise.io/node-name]: Forbidden: the label is immutable]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := admitted(tc.change)
			got := ""
			if err := containerrestart.CheckUpdate(admitted(), is).ToAggregate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckGrace(t *testing.T) {
	cases := map[string]struct {
		was, is *request
		ok      bool
	}{
		"never taken out of traffic": {admitted(), admitted(graced(1)), true},
		"kept":                       {admitted(graced(1.2)), admitted(graced(1)), true},
		"moved":                      {admitted(graced(1)), admitted(graced(3)), false},
		"dropped":                    {admitted(graced(1)), admitted(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if faults := containerrestart.CheckGrace(tc.was, tc.is); (len(faults) == 0) != tc.ok {
				t.Errorf("got %v", faults)
			}
		})
	}
}
