package finish_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/write"
)

// outcome is a plan in short.
type outcome struct {
	Stop   []string
	Images map[string]string
	Phase  corev1.PodPhase
	Delete string
	After  time.Duration
	Notes  []string
}

func inShort(p finish.Action) outcome {
	o := outcome{After: p.RequeueAfter, Notes: codes(p.Notes)}
	for _, w := range p.Writes {
		switch w.Verb {
		case write.Create:
			for _, c := range created(p).Spec.Containers {
				o.Stop = append(o.Stop, c.Name)
			}
		case write.Delete:
			o.Delete = string(w.Object.GetUID())
		default:
			data, err := w.Data()
			pod := corev1.Pod{}
			if err = errors.Join(err, json.Unmarshal(data, &pod)); err != nil {
				panic(err)
			}
			o.Phase = pod.Status.Phase
			for _, c := range pod.Spec.Containers {
				if o.Images == nil {
					o.Images = map[string]string{}
				}
				o.Images[c.Name] = c.Image
			}
		}
	}
	return o
}

// created returns the request that an action creates; nil for none.
func created(p finish.Action) *request {
	for _, w := range p.Writes {
		if r, is := w.Object.(*request); is && w.Verb == write.Create {
			return r
		}
	}
	return nil
}

func is(names ...string) []string { return names }

func TestNext(t *testing.T) {
	const (
		succeeded = v1beta1.ContainerRecreateRequestSucceeded
		failed    = v1beta1.ContainerRecreateRequestFailed
		pending   = v1beta1.ContainerRecreateRequestPending
	)
	three := func(one, two, third corev1.ContainerState) *corev1.Pod {
		return newPod(never, mainOf("main", ended(0)), sidecar("s1", one, killEnv), sidecar("s2", two, killEnv),
			sidecar("s3", third, killEnv, ignoreEnv))
	}
	for name, c := range map[string]struct {
		why     string
		pod     *corev1.Pod
		node    *corev1.Node // a real one where it is nil
		request *request
		want    outcome
	}{
		"main runs": {
			why:  "it may still need its sidecar",
			pod:  newPod(never, mainOf("main", running()), sidecar("s1", running(), killEnv)),
			want: outcome{},
		},
		"main failed": {
			why:  "it never starts again",
			pod:  newPod(never, mainOf("main", ended(1)), sidecar("s1", running(), killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"main succeeded": {
			why:  "it never starts again",
			pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"all ended": {
			why:  "nothing is left to stop",
			pod:  newPod(never, mainOf("main", ended(1)), sidecar("s1", ended(0), killEnv)),
			want: outcome{},
		},
		"main starts again": {
			why:  "it failed, and needs its sidecar once more",
			pod:  newPod(onFailure, mainOf("main", ended(1)), sidecar("s1", running(), killEnv)),
			want: outcome{},
		},
		"main done on failure": {
			why:  "it did not fail, so it never starts again",
			pod:  newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"two and two": {
			why: "one request names all",
			pod: newPod(onFailure, mainOf("m1", ended(0)), mainOf("m2", ended(0)), sidecar("s1", running(), killEnv),
				sidecar("s2", running(), killEnv)),
			want: outcome{Stop: is("s1", "s2")},
		},
		"one is left": {
			why: "what has ended needs no request",
			pod: newPod(onFailure, mainOf("m1", ended(0)), mainOf("m2", ended(0)), sidecar("s1", ended(0), killEnv),
				sidecar("s2", running(), killEnv)),
			want: outcome{Stop: is("s2")},
		},
		"one main runs": {
			why:  "it may still need its sidecar",
			pod:  newPod(onFailure, mainOf("m1", ended(0)), mainOf("m2", running()), sidecar("s1", running(), killEnv)),
			want: outcome{},
		},
		"those that count first": {
			why:  "the pod has not ended before they have",
			pod:  three(running(), running(), running()),
			want: outcome{Stop: is("s1", "s2")},
		},
		"then the others": {
			why:  "only main containers say how the pod has ended",
			pod:  three(ended(0), ended(137), running()),
			want: outcome{Stop: is("s3"), Phase: corev1.PodSucceeded},
		},
		"of a failure": {
			why:  "the main container failed, and so has the pod",
			pod:  newPod(never, mainOf("m1", ended(0)), mainOf("main", ended(3)), sidecar("s3", running(), killEnv, ignoreEnv)),
			want: outcome{Stop: is("s3"), Phase: corev1.PodFailed},
		},
		"always": {
			why:  "such a pod never completes",
			pod:  newPod(always, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)),
			want: outcome{},
		},
		"only an image": {
			why:  "an image ends it on virtual nodes only",
			pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv), sidecar("s2", running(), killEnv)),
			want: outcome{Stop: is("s2")},
		},
		"only an image, alone": {
			why:  "an image ends it on virtual nodes only",
			pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv)),
			want: outcome{},
		},
		"both": {
			why:  "it can be stopped",
			pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv, killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"the phase is settled": {
			why: "once", pod: phased(three(ended(0), ended(0), running()), corev1.PodFailed), want: outcome{Stop: is("s3")},
		},

		"virtual": {
			why: "an image ends what still runs there; nobody could carry out a request",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv), sidecar("s2", ended(0), imageEnv),
				sidecar("s3", running(), imageEnv, killEnv, ignoreEnv)),
			node: virtualNode(),
			want: outcome{Images: map[string]string{"s1": "exit:1", "s3": "exit:1"}},
		},
		"virtual, main runs": {
			why:  "it may still need its sidecar",
			pod:  newPod(never, mainOf("main", running()), sidecar("s1", running(), imageEnv)),
			node: virtualNode(),
			want: outcome{},
		},
		"virtual, again": {
			why: "the image is set; that it has not ended is for the node",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv).with(func(c *corev1.Container) {
				c.Image = "exit:1"
			})),
			node: virtualNode(),
			want: outcome{Notes: is("SidecarImageSet s1")},
		},
		"virtual, no image": {
			why:  "nobody can stop it",
			pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)),
			node: virtualNode(),
			want: outcome{Notes: is("SidecarNoImage s1")},
		},
		"no node": {
			why:  "it may be virtual",
			pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)),
			node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "none"}},
			want: outcome{After: time.Minute, Notes: is("NodeUnknown job")},
		},

		"under way": {
			pod:     three(running(), running(), running()),
			request: made("s1", "s2"),
			want:    outcome{Notes: is("RequestUnderWay sidecar-termination-u1")},
		},
		"half way": {
			pod:     three(ended(0), running(), running()),
			request: made("s1", "s2"),
			want:    outcome{Notes: is("RequestUnderWay sidecar-termination-u1")},
		},
		"it has done its work": {
			why:     "a request for containers that never start again never ends",
			pod:     three(ended(0), ended(0), running()),
			request: made("s1", "s2"),
			want:    outcome{Stop: is("s3"), Phase: corev1.PodSucceeded, Delete: "r1"},
		},
		"the last is under way": {
			pod:     phased(three(ended(0), ended(0), running()), corev1.PodSucceeded),
			request: made("s3"),
			want:    outcome{Notes: is("RequestUnderWay sidecar-termination-u1")},
		},
		"it is over": {
			pod:     three(ended(0), ended(0), running()),
			request: over(made("s1", "s2"), 20, "", succeeded, succeeded),
			want:    outcome{Stop: is("s3"), Phase: corev1.PodSucceeded, Delete: "r1"},
		},
		"it is going": {
			why:     "another cannot be made before",
			pod:     three(running(), running(), running()),
			request: deleting(made("s1", "s2")),
			want:    outcome{After: 10 * time.Second, Notes: is("RequestUnderWay sidecar-termination-u1")},
		},
		"no daemon": {
			why:     "tried again when as long has passed as since the end",
			pod:     three(running(), ended(0), ended(0)),
			request: over(made("s1"), 59, "daemon has not responded for a long time"),
			want:    outcome{Stop: is("s1"), Delete: "r1"},
		},
		"no daemon, yet": {
			why:     "the pause is not over",
			pod:     three(running(), ended(0), ended(0)),
			request: over(made("s1"), 80, "daemon has not responded for a long time"),
			want:    outcome{After: 40 * time.Second, Notes: is("RequestFailed sidecar-termination-u1")},
		},
		"it cannot be stopped": {
			pod:     three(running(), running(), ended(0)),
			request: over(made("s1", "s2"), 30, "", failed, pending),
			want:    outcome{Stop: is("s1", "s2"), Delete: "r1"},
		},
		"it came back": {
			why: "stopped with an error, and the pod starts such again: nothing helps",
			pod: newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", running(), killEnv),
				sidecar("s2", running(), killEnv)),
			request: over(made("s1", "s2"), 30, "", succeeded, failed),
			want:    outcome{Stop: is("s2"), Delete: "r1", Notes: is("SidecarCameBack s1")},
		},
		"all came back": {
			why:     "nothing helps",
			pod:     newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)),
			request: over(made("s1"), 30, "", succeeded),
			want:    outcome{Notes: is("SidecarCameBack s1")},
		},
		"late": {
			why: "one that was not there for the request",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", ended(0), killEnv),
				sidecar("s2", running(), killEnv)),
			request: made("s1"),
			want:    outcome{Stop: is("s2"), Delete: "r1"},
		},
		"without a time": {"it counts from its creation", three(running(), ended(0), ended(0)), nil, func() *request {
			r := over(made("s1"), 30, "")
			r.Status.CompletionTime, r.CreationTimestamp = nil, stamp(90)
			return r
		}(), outcome{After: 60 * time.Second, Notes: is("RequestFailed sidecar-termination-u1")}},

		"never ran": {
			why: "a request for it is refused, with all others in it",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", waitingFor("ErrImagePull"), killEnv).unstarted(),
				sidecar("s2", running(), killEnv)),
			want: outcome{Stop: is("s2"), Notes: is("SidecarNeverRan s1")},
		},
		"crashing": {
			why:  "it is stopped when it starts again",
			pod:  newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", waitingFor("CrashLoopBackOff"), killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"no ID is reported": {
			why:  "it runs",
			pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv).unstarted()),
			want: outcome{Stop: is("s1")},
		},
		"none is main": {
			why:  "of sidecars alone nothing has finished",
			pod:  newPod(never, sidecar("s1", running(), killEnv), sidecar("s2", running(), killEnv)),
			want: outcome{},
		},
		"too early": {
			why: "not all are known",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv),
				sidecar("s2", running(), killEnv).unheard()),
			want: outcome{},
		},
		"of nobody": {
			why: "a status of another name",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv), part{
				corev1.Container{Name: "x"}, status("y", ended(0)),
			}),
			want: outcome{},
		},
		"terminating": {
			pod: terminating(newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv))), want: outcome{},
		},
		"pending": {
			pod:  phased(newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), corev1.PodPending),
			want: outcome{},
		},
		"no sidecar": {"", newPod(never, mainOf("main", ended(0)), mainOf("m2", ended(0))), nil, nil, outcome{}},
		"false": {
			why: "only true is true",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv).with(func(c *corev1.Container) {
				c.Env[0].Value = "yes"
			})),
			want: outcome{},
		},
		"TRUE": {
			why: "in any case",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv).with(func(c *corev1.Container) {
				c.Env[0].Value = "TrUe"
			})),
			want: outcome{Stop: is("s1")},
		},
		"from elsewhere": {
			why: "only literal values are read",
			pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv).with(func(c *corev1.Container) {
				c.Env[0].Value, c.Env[0].ValueFrom = "", &corev1.EnvVarSource{}
			})),
			want: outcome{},
		},
		"twice": {
			why: "the last counts",
			pod: newPod(never, mainOf("main", ended(0)),
				sidecar("s1", running(), killEnv, killEnv).with(func(c *corev1.Container) { c.Env[1].Value = "false" })),
			want: outcome{},
		},
		"ignored alone": {
			why:  "without the first variable it is a main container",
			pod:  newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), ignoreEnv)),
			want: outcome{},
		},
		"native sidecars": {
			why: "the kubelet stops them", pod: initialised(newPod(never, mainOf("main", ended(0)))), want: outcome{},
		},
		"its own policy": {
			why: "a main container that starts again has not finished",
			pod: newPod(never, mainOf("main", ended(0)).with(func(c *corev1.Container) {
				c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			}), sidecar("s1", running(), killEnv)),
			want: outcome{},
		},
		"its own policy, no": {
			why: "a main container that does not start again has",
			pod: newPod(onFailure, mainOf("main", ended(1)).with(func(c *corev1.Container) {
				c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
			}), sidecar("s1", running(), killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"its own rule": {
			why: "42 starts again", pod: newPod(never, ruled(42, "In", 42), sidecar("s1", running(), killEnv)), want: outcome{},
		},
		"its own rule, no": {
			why:  "41 does not",
			pod:  newPod(never, ruled(41, "In", 42), sidecar("s1", running(), killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"all but": {
			why:  "41 starts again",
			pod:  newPod(never, ruled(41, "NotIn", 42), sidecar("s1", running(), killEnv)),
			want: outcome{},
		},
		"all but, no": {
			why:  "42 does not",
			pod:  newPod(never, ruled(42, "NotIn", 42), sidecar("s1", running(), killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"an unknown rule": {
			why:  "of a later Kubernetes",
			pod:  newPod(never, ruled(42, "Like", 42), sidecar("s1", running(), killEnv)),
			want: outcome{Stop: is("s1")},
		},
		"an empty rule": {
			why:  "of a later Kubernetes",
			pod:  newPod(never, ruled(42, "", 42), sidecar("s1", running(), killEnv)),
			want: outcome{Stop: is("s1")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := finish.Input{Pod: c.pod, Node: c.node, Request: c.request, Now: at(120)}
			switch {
			case c.node == nil:
				in.Node = realNode()
			case c.node.Name == "none":
				in.Node = nil
			}
			before := jsonOf(in)
			plan := finish.Next(in)
			if diff := cmp.Diff(c.want, inShort(plan)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if after := jsonOf(in); after != before {
				t.Errorf("the input is changed: %s", cmp.Diff(before, after))
			}
			if (plan.Event != "") != (c.want.Stop != nil || c.want.Images != nil) {
				t.Errorf("event %q", plan.Event)
			}
			if len(plan.Writes) > 0 && !finish.Concerns(c.pod) {
				t.Error("a plan for a pod that is of no concern")
			}
		})
	}
}

func phased(p *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	p.Status.Phase = phase
	return p
}

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = ptr.To(stamp(1))
	return p
}

func deleting(r *request) *request {
	r.DeletionTimestamp = ptr.To(stamp(1))
	return r
}

// initialised adds a native sidecar.
func initialised(p *corev1.Pod) *corev1.Pod {
	p.Spec.InitContainers = []corev1.Container{{
		Name:          "i",
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Env:           []corev1.EnvVar{{Name: killEnv, Value: "true"}},
	}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{*status("i", running())}
	return p
}

// ruled is a main container with a rule of its own; none in it where there is no operator.
func ruled(code int32, operator string, codes ...int32) part {
	return mainOf("main", ended(code)).with(func(c *corev1.Container) {
		rule := corev1.ContainerRestartRule{Action: corev1.ContainerRestartRuleActionRestart}
		if operator != "" {
			rule.ExitCodes = &corev1.ContainerRestartRuleOnExitCodes{
				Operator: corev1.ContainerRestartRuleOnExitCodesOperator(operator), Values: codes,
			}
		}
		c.RestartPolicy, c.RestartPolicyRules = ptr.To(corev1.ContainerRestartPolicyNever),
			[]corev1.ContainerRestartRule{rule}
	})
}
