package finish_test

import (
	gocmp "cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
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

// parsed is a pod of containers as "name=state+variable+...". The states are run, a waiting reason, and an exit code;
// the variables are kill, image and ignore. A container with "new" never ran, one with "unheard" has no status.
func parsed(policy corev1.RestartPolicy, text string) *corev1.Pod {
	var parts []part
	for container := range strings.FieldsSeq(text) {
		name, rest, _ := strings.Cut(container, "=")
		words := strings.Split(rest, "+")
		state := waitingFor(words[0])
		if code, err := strconv.Atoi(words[0]); err == nil {
			state = ended(int32(code))
		} else if words[0] == "run" {
			state = running()
		}
		p := sidecar(name, state)
		for _, word := range words[1:] {
			switch word {
			case "new":
				p = p.unstarted()
			case "unheard":
				p.status = nil
			default:
				p.spec.Env = append(p.spec.Env, sidecar(name, state, variables()[word]).spec.Env...)
			}
		}
		parts = append(parts, p)
	}
	return newPod(policy, parts...)
}

func variables() map[string]string {
	return map[string]string{"kill": killEnv, "image": imageEnv, "ignore": ignoreEnv}
}

func TestNext(t *testing.T) {
	const (
		succeeded = v1beta1.ContainerRecreateRequestSucceeded
		failed    = v1beta1.ContainerRecreateRequestFailed
		pending   = v1beta1.ContainerRecreateRequestPending
		noDaemon  = "daemon has not responded for a long time"
		waits     = "RequestUnderWay sidecar-termination-u1"
		one       = "main=0 s1=run+kill"
	)
	phase := func(p corev1.PodPhase) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Status.Phase = p } }
	env := func(change func(*corev1.EnvVar)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			env := pod.Spec.Containers[1].Env
			change(&env[len(env)-1])
		}
	}
	restarts := func(p corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Containers[0].RestartPolicy = &p }
	}
	undated := over(made("s1"), 30, "")
	undated.Status.CompletionTime, undated.CreationTimestamp = nil, stamp(90)
	for name, c := range map[string]struct {
		policy  corev1.RestartPolicy // Never where it is empty
		pod     string
		change  func(*corev1.Pod)
		node    *corev1.Node // a real one where it is nil
		request *request
		want    outcome
	}{
		"a main container that runs may need its sidecar": {pod: "main=run s1=run+kill"},
		"a main container failed and never starts again":  {pod: "main=1 s1=run+kill", want: outcome{Stop: is("s1")}},
		"nothing is left to stop":                         {pod: "main=1 s1=0+kill"},
		"a main container starts again":                   {policy: onFailure, pod: "main=1 s1=run+kill"},
		"a main container did not fail":                   {policy: onFailure, pod: one, want: outcome{Stop: is("s1")}},
		"one request names all": {
			policy: onFailure, pod: "m1=0 m2=0 s1=run+kill s2=run+kill", want: outcome{Stop: is("s1", "s2")},
		},
		"what has ended needs no request": {
			policy: onFailure, pod: "m1=0 m2=0 s1=0+kill s2=run+kill", want: outcome{Stop: is("s2")},
		},
		"the other main container runs": {policy: onFailure, pod: "m1=0 m2=run s1=run+kill"},
		"sidecars whose exit counts come first": {
			pod: "main=0 s1=run+kill s2=run+kill s3=run+kill+ignore", want: outcome{Stop: is("s1", "s2")},
		},
		"only main containers say how the pod has ended": {
			pod:  "main=0 s1=0+kill s2=137+kill s3=run+kill+ignore",
			want: outcome{Stop: is("s3"), Phase: corev1.PodSucceeded},
		},
		"one main container failed, and so has the pod": {
			pod: "m1=0 main=3 s3=run+kill+ignore", want: outcome{Stop: is("s3"), Phase: corev1.PodFailed},
		},
		"such a pod never completes": {policy: always, pod: one},
		"an image ends a sidecar on virtual nodes only": {
			pod: "main=0 s1=run+image s2=run+kill", want: outcome{Stop: is("s2")},
		},
		"an image alone":   {pod: "main=0 s1=run+image"},
		"kill beats image": {pod: "main=0 s1=run+image+kill", want: outcome{Stop: is("s1")}},
		"the phase is settled once": {
			pod: "main=0 s1=0+kill s2=0+kill s3=run+kill+ignore", change: phase(corev1.PodFailed),
			want: outcome{Stop: is("s3")},
		},

		"virtual: an image ends what still runs, and there is no request": {
			pod: "main=0 s1=run+image s2=0+image s3=run+image+kill+ignore", node: virtualNode(),
			want: outcome{Images: map[string]string{"s1": "exit:1", "s3": "exit:1"}},
		},
		"virtual: a main container runs": {pod: "main=run s1=run+image", node: virtualNode()},
		"virtual: the image is set": {
			pod: "main=0 s1=run+image", node: virtualNode(), want: outcome{Notes: is("SidecarImageSet s1")},
			change: func(p *corev1.Pod) { p.Spec.Containers[1].Image = "exit:1" },
		},
		"virtual: a sidecar has no image": {
			pod: one, node: virtualNode(), want: outcome{Notes: is("SidecarNoImage s1")},
		},
		"an unknown node may be virtual": {
			pod: one, node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "none"}},
			want: outcome{After: time.Minute, Notes: is("NodeUnknown job")},
		},

		"a request is under way": {
			pod: "main=0 s1=0+kill s2=run+kill", request: made("s1", "s2"), want: outcome{Notes: is(waits)},
		},
		"a request for containers that never start again never ends": {
			pod: "main=0 s1=0+kill s2=0+kill s3=run+kill+ignore", request: made("s1", "s2"),
			want: outcome{Stop: is("s3"), Phase: corev1.PodSucceeded, Delete: "r1"},
		},
		"the last request is under way": {
			pod: "main=0 s1=0+kill s3=run+kill+ignore", change: phase(corev1.PodSucceeded), request: made("s3"),
			want: outcome{Notes: is(waits)},
		},
		"a request is over": {
			pod:     "main=0 s1=0+kill s2=0+kill s3=run+kill+ignore",
			request: over(made("s1", "s2"), 20, "", succeeded, succeeded),
			want:    outcome{Stop: is("s3"), Phase: corev1.PodSucceeded, Delete: "r1"},
		},
		"a request is being deleted": {
			pod: one, request: deleting(made("s1")), want: outcome{After: 10 * time.Second, Notes: is(waits)},
		},
		"without a daemon the pause is as long as since the end": {
			pod: one, request: over(made("s1"), 59, noDaemon), want: outcome{Stop: is("s1"), Delete: "r1"},
		},
		"the pause is not over": {
			pod: one, request: over(made("s1"), 80, noDaemon),
			want: outcome{After: 40 * time.Second, Notes: is("RequestFailed sidecar-termination-u1")},
		},
		"a sidecar cannot be stopped": {
			pod: "main=0 s1=run+kill s2=run+kill", request: over(made("s1", "s2"), 30, "", failed, pending),
			want: outcome{Stop: is("s1", "s2"), Delete: "r1"},
		},
		"a stopped sidecar came back": {
			policy: onFailure, pod: "main=0 s1=run+kill s2=run+kill",
			request: over(made("s1", "s2"), 30, "", succeeded, failed),
			want:    outcome{Stop: is("s2"), Delete: "r1", Notes: is("SidecarCameBack s1")},
		},
		"all came back": {
			policy: onFailure, pod: one, request: over(made("s1"), 30, "", succeeded),
			want: outcome{Notes: is("SidecarCameBack s1")},
		},
		"a sidecar that the request does not have": {
			pod: "main=0 s1=0+kill s2=run+kill", request: made("s1"), want: outcome{Stop: is("s2"), Delete: "r1"},
		},
		"without a time the creation of the request counts": {
			pod: one, request: undated,
			want: outcome{After: 60 * time.Second, Notes: is("RequestFailed sidecar-termination-u1")},
		},

		"a request for a sidecar that never ran is refused": {
			pod:  "main=0 s1=ErrImagePull+kill+new s2=run+kill",
			want: outcome{Stop: is("s2"), Notes: is("SidecarNeverRan s1")},
		},
		"a crashing sidecar is stopped when it starts again": {
			policy: onFailure, pod: "main=0 s1=CrashLoopBackOff+kill", want: outcome{Stop: is("s1")},
		},
		"no ID is reported":            {pod: "main=0 s1=run+kill+new", want: outcome{Stop: is("s1")}},
		"no container is main":         {pod: "s1=run+kill s2=run+kill"},
		"not all containers are known": {pod: "main=0 s1=run+kill s2=run+kill+unheard"},
		"a status of another name": {
			pod: "main=0 s1=run+kill x=0", change: func(p *corev1.Pod) { p.Status.ContainerStatuses[2].Name = "y" },
		},
		"a terminating pod": {pod: one, change: func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(stamp(1)) }},
		"a pending pod":     {pod: one, change: phase(corev1.PodPending)},
		"no sidecar":        {pod: "main=0 m2=0"},
		"only true is true": {pod: one, change: env(func(e *corev1.EnvVar) { e.Value = "yes" })},
		"true in any case": {
			pod: one, change: env(func(e *corev1.EnvVar) { e.Value = "TrUe" }), want: outcome{Stop: is("s1")},
		},
		"only literal values": {
			pod: one, change: env(func(e *corev1.EnvVar) { e.Value, e.ValueFrom = "", &corev1.EnvVarSource{} }),
		},
		"the last of two values": {
			pod: "main=0 s1=run+kill+kill", change: env(func(e *corev1.EnvVar) { e.Value = "false" }),
		},
		"ignore alone is no sidecar": {pod: "main=0 s1=run+ignore"},
		"the kubelet stops native sidecars": {
			pod: "main=0", change: func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{
					Name: "i", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
					Env: []corev1.EnvVar{{Name: killEnv, Value: "true"}},
				}}
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{*status("i", running())}
			},
		},
		"a main container with its own policy starts again": {
			pod: one, change: restarts(corev1.ContainerRestartPolicyAlways),
		},
		"a main container with its own policy has finished": {
			policy: onFailure, pod: "main=1 s1=run+kill", change: restarts(corev1.ContainerRestartPolicyNever),
			want: outcome{Stop: is("s1")},
		},
		"a rule: 42 starts again":  {pod: "main=42 s1=run+kill", change: ruled("In", 42)},
		"a rule: 41 does not":      {pod: "main=41 s1=run+kill", change: ruled("In", 42), want: outcome{Stop: is("s1")}},
		"all but 42: 41 starts":    {pod: "main=41 s1=run+kill", change: ruled("NotIn", 42)},
		"all but 42: 42 does not":  {pod: "main=42 s1=run+kill", change: ruled("NotIn", 42), want: outcome{Stop: is("s1")}},
		"an unknown operator":      {pod: "main=42 s1=run+kill", change: ruled("Like", 42), want: outcome{Stop: is("s1")}},
		"a rule without exit code": {pod: "main=42 s1=run+kill", change: ruled("", 42), want: outcome{Stop: is("s1")}},
	} {
		t.Run(name, func(t *testing.T) {
			in := finish.Input{Pod: parsed(gocmp.Or(c.policy, never), c.pod), Node: c.node, Request: c.request, Now: at(120)}
			if c.change != nil {
				c.change(in.Pod)
			}
			switch {
			case c.node == nil:
				in.Node = realNode()
			case c.node.Name == "none":
				in.Node = nil
			}
			before := jsonOf(in)
			plan := finish.Next(in)
			if diff := cmp.Diff(c.want, inShort(plan)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if after := jsonOf(in); after != before {
				t.Errorf("the input is changed: %s", cmp.Diff(before, after))
			}
			if (plan.Event != "") != (c.want.Stop != nil || c.want.Images != nil) {
				t.Errorf("event %q", plan.Event)
			}
			if len(plan.Writes) > 0 && !finish.Concerns(in.Pod) {
				t.Error("a plan for a pod that is of no concern")
			}
		})
	}
}

func deleting(r *request) *request {
	r.DeletionTimestamp = ptr.To(stamp(1))
	return r
}

// ruled gives the main container a rule of its own; none in it where there is no operator.
func ruled(operator string, codes ...int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		rule := corev1.ContainerRestartRule{Action: corev1.ContainerRestartRuleActionRestart}
		if operator != "" {
			rule.ExitCodes = &corev1.ContainerRestartRuleOnExitCodes{
				Operator: corev1.ContainerRestartRuleOnExitCodesOperator(operator), Values: codes,
			}
		}
		c := &pod.Spec.Containers[0]
		c.RestartPolicy, c.RestartPolicyRules = ptr.To(corev1.ContainerRestartPolicyNever),
			[]corev1.ContainerRestartRule{rule}
	}
}
