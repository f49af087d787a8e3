package containerrestart_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/containerrestart"
)

func TestStopWithin(t *testing.T) {
	cases := map[string]struct {
		why                string
		grace, spent, want time.Duration
	}{
		"no hook":               {"all of it", 30 * time.Second, 0, 30 * time.Second},
		"a hook":                {"what is left", 30 * time.Second, 8 * time.Second, 22 * time.Second},
		"parts of a second":     {"whole seconds are taken off", 30 * time.Second, 8900 * time.Millisecond, 22 * time.Second},
		"all of it":             {"two seconds remain always", 3 * time.Second, 3 * time.Second, 2 * time.Second},
		"a hook that overstays": {"never negative", 3 * time.Second, time.Minute, 2 * time.Second},
		"no grace":              {"two seconds also then", 0, 0, 2 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (containerrestart.Kill{Grace: tc.grace}).StopWithin(tc.spent); got != tc.want {
				t.Errorf("%s: got %v, want %v", tc.why, got, tc.want)
			}
		})
	}
}

// TestHooks says how the container app is stopped, by a daemon that sees the pod and by one that does not.
func TestHooks(t *testing.T) {
	get := func(change func(*corev1.HTTPGetAction)) corev1.LifecycleHandler {
		g := corev1.HTTPGetAction{Path: "/bye?now=1", Port: intstr.FromInt32(8080)}
		change(&g)
		return httpHook(g)
	}
	url := func(u string) *containerrestart.Hook {
		return &containerrestart.Hook{HTTP: &containerrestart.HTTPGet{URL: u}}
	}
	cases := map[string]struct {
		why   string
		pod   *corev1.Pod
		grace *int64
		ip    string
		blind *containerrestart.Hook // without the pod
		want  *containerrestart.Hook
		err   string
	}{
		"none": {why: "nothing runs", pod: newPod()},
		"command": {
			why:   "as it is",
			pod:   newPod(preStop(0, execHook("sync", "-f"))),
			blind: &containerrestart.Hook{Exec: []string{"sync", "-f"}},
			want:  &containerrestart.Hook{Exec: []string{"sync", "-f"}},
		},
		"no grace": {
			why: "then there is no time for a hook", pod: newPod(preStop(0, execHook("sync"))), grace: ptr.To[int64](0),
		},
		"sleep": {
			why:  "the request has no place for it, the pod has",
			pod:  newPod(preStop(0, corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}})),
			want: &containerrestart.Hook{Sleep: ptr.To(5 * time.Second)},
		},
		"request": {
			why:   "to the pod",
			pod:   newPod(preStop(0, get(func(*corev1.HTTPGetAction) {}))),
			ip:    "10.9.9.9",
			blind: url("http://10.9.9.9:8080/bye?now=1"),
			want:  url("http://10.0.0.7:8080/bye?now=1"),
		},
		"request to a host": {
			why:   "as it says",
			pod:   newPod(preStop(0, get(func(g *corev1.HTTPGetAction) { g.Host, g.Scheme = "example.com", "HTTPS" }))),
			blind: url("https://example.com:8080/bye?now=1"),
			want:  url("https://example.com:8080/bye?now=1"),
		},
		"named port": {
			why:   "found among the container's",
			pod:   newPod(preStop(0, get(func(g *corev1.HTTPGetAction) { g.Port = port("web") }))),
			ip:    "fd00::7",
			blind: url("http://[fd00::7]:8080/bye?now=1"),
			want:  url("http://10.0.0.7:8080/bye?now=1"),
		},
		"number as a name": {
			why:   "it is a number all the same",
			pod:   newPod(preStop(0, get(func(g *corev1.HTTPGetAction) { g.Port = port("81") }))),
			ip:    "10.9.9.9",
			blind: url("http://10.9.9.9:81/bye?now=1"),
			want:  url("http://10.0.0.7:81/bye?now=1"),
		},
		"path that is none": {
			why:   "it is sent, escaped",
			pod:   newPod(preStop(0, get(func(g *corev1.HTTPGetAction) { g.Path = "/%zz" }))),
			ip:    "10.9.9.9",
			blind: url("http://10.9.9.9:8080/%25zz"),
			want:  url("http://10.0.0.7:8080/%25zz"),
		},
		"unknown port": {
			why: "it fails",
			pod: newPod(preStop(0, get(func(g *corev1.HTTPGetAction) { g.Port = port("admin") }))),
			err: `the container has no port "admin"`,
		},
		"port out of range": {
			why: "it fails",
			pod: newPod(preStop(0, get(func(g *corev1.HTTPGetAction) { g.Port = intstr.FromInt32(70000) }))),
			err: `the container has no port "70000"`,
		},
		"no IP": {
			why: "it fails",
			pod: newPod(preStop(0, get(func(*corev1.HTTPGetAction) {})), func(p *corev1.Pod) { p.Status.PodIP = "" }),
			err: "the pod has no IP, and the hook names no host",
		},
		"connection": {
			why: "it is no hook",
			pod: newPod(preStop(0, corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: port("web")}})),
			err: "the hook has no handler that can run",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ask := asked(func(r *request) { r.Spec.Strategy = &strategy{TerminationGracePeriodSeconds: tc.grace} })
			r, faults := containerrestart.Admit(ask, tc.pod, &corev1.Node{})
			if faults != nil {
				t.Fatal(faults)
			}
			in(recreating, st("app", pending, false, ""), st("log", pending, false, ""))(r)
			w := containerrestart.Work{
				Request:    r,
				PodIP:      tc.ip,
				Containers: []containerrestart.Container{up("app", 0, -60), up("log", 0, -60)},
				Now:        at(1),
			}
			blind := containerrestart.Next(w).Kill
			w.Pod, w.PodIP = tc.pod, "1.2.3.4"
			if tc.err == "" {
				if diff := cmp.Diff(tc.blind, blind.Hook); diff != "" {
					t.Errorf("%s, without the pod (-want +got):\n%s", tc.why, diff)
				}
			} else {
				w.PodIP = ""
			}
			k := containerrestart.Next(w).Kill
			if tc.err != "" {
				if k.Hook == nil || k.Hook.Err == nil || k.Hook.Err.Error() != tc.err {
					t.Errorf("%s: got %+v, want %q", tc.why, k.Hook, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, k.Hook); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
			if k.ContainerID != id("app", 0) || k.Text != "Stopping container app by ContainerRecreateRequest again" {
				t.Errorf("got %+v", k)
			}
			if want := time.Duration(ptr.Deref(tc.grace, 10)) * time.Second; k.Grace != want {
				t.Errorf("grace %v, want %v", k.Grace, want)
			}
		})
	}
}

// TestGraceOfNobody is for a request that says nothing of it, and for one that says too much.
func TestGraceOfNobody(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{-1: 30 * time.Second, 1 << 62: 9223372036 * time.Second} {
		r := admitted(in(recreating, st("app", pending, false, ""), st("log", pending, false, "")))
		if r.Spec.Strategy.TerminationGracePeriodSeconds = &seconds; seconds < 0 {
			r.Spec.Strategy = nil
		}
		w := containerrestart.Work{
			Request: r, Containers: []containerrestart.Container{up("app", 0, -60), up("log", 0, -60)}, Now: at(1),
		}
		if k := containerrestart.Next(w).Kill; k.Grace != want {
			t.Errorf("%d: grace %v, want %v", seconds, k.Grace, want)
		}
	}
}
