package finish_test

import (
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
	o := outcome{Images: p.Images, Delete: string(p.Delete), After: p.RequeueAfter, Notes: codes(p.Notes)}
	if p.Create != nil {
		for _, c := range p.Create.Spec.Containers {
			o.Stop = append(o.Stop, c.Name)
		}
	}
	if p.Status != nil {
		o.Phase = p.Status.Phase
	}
	return o
}

func is(names ...string) []string { return names }

func TestNext(t *testing.T) {
	const (
		succeeded = v1beta1.ContainerRecreateRequestSucceeded
		failed    = v1beta1.ContainerRecreateRequestFailed
		pending   = v1beta1.ContainerRecreateRequestPending
	)
	three := func(one, two, third corev1.ContainerState) *corev1.Pod {
		return newPod(never, mainOf("main", ended(0)), sidecar("s1", one, killEnv), sidecar("s2", two, killEnv), sidecar("s3", third, killEnv, ignoreEnv))
	}
	for name, c := range map[string]struct {
		why     string
		pod     *corev1.Pod
		node    *corev1.Node // a real one where it is nil
		request *request
		want    outcome
	}{
		"main runs":              {"it may still need its sidecar", newPod(never, mainOf("main", running()), sidecar("s1", running(), killEnv)), nil, nil, outcome{}},
		"main failed":            {"it never starts again", newPod(never, mainOf("main", ended(1)), sidecar("s1", running(), killEnv)), nil, nil, outcome{Stop: is("s1")}},
		"main succeeded":         {"it never starts again", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), nil, nil, outcome{Stop: is("s1")}},
		"all ended":              {"nothing is left to stop", newPod(never, mainOf("main", ended(1)), sidecar("s1", ended(0), killEnv)), nil, nil, outcome{}},
		"main starts again":      {"it failed, and needs its sidecar once more", newPod(onFailure, mainOf("main", ended(1)), sidecar("s1", running(), killEnv)), nil, nil, outcome{}},
		"main done on failure":   {"it did not fail, so it never starts again", newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), nil, nil, outcome{Stop: is("s1")}},
		"two and two":            {"one request names all", newPod(onFailure, mainOf("m1", ended(0)), mainOf("m2", ended(0)), sidecar("s1", running(), killEnv), sidecar("s2", running(), killEnv)), nil, nil, outcome{Stop: is("s1", "s2")}},
		"one is left":            {"what has ended needs no request", newPod(onFailure, mainOf("m1", ended(0)), mainOf("m2", ended(0)), sidecar("s1", ended(0), killEnv), sidecar("s2", running(), killEnv)), nil, nil, outcome{Stop: is("s2")}},
		"one main runs":          {"it may still need its sidecar", newPod(onFailure, mainOf("m1", ended(0)), mainOf("m2", running()), sidecar("s1", running(), killEnv)), nil, nil, outcome{}},
		"those that count first": {"the pod has not ended before they have", three(running(), running(), running()), nil, nil, outcome{Stop: is("s1", "s2"), Notes: is("SidecarLater s3")}},
		"then the others":        {"only main containers say how the pod has ended", three(ended(0), ended(137), running()), nil, nil, outcome{Stop: is("s3"), Phase: corev1.PodSucceeded}},
		"of a failure": {
			"the main container failed, and so has the pod", newPod(never, mainOf("m1", ended(0)), mainOf("main", ended(3)), sidecar("s3", running(), killEnv, ignoreEnv)),
			nil, nil,
			outcome{Stop: is("s3"), Phase: corev1.PodFailed},
		},
		"always": {"such a pod never completes", newPod(always, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), nil, nil, outcome{}},
		"only an image": {
			"an image ends it on virtual nodes only", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv), sidecar("s2", running(), killEnv)), nil, nil,
			outcome{Stop: is("s2"), Notes: is("SidecarImageOnly s1")},
		},
		"only an image, alone": {"an image ends it on virtual nodes only", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv)), nil, nil, outcome{Notes: is("SidecarImageOnly s1")}},
		"both":                 {"it can be stopped", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv, killEnv)), nil, nil, outcome{Stop: is("s1")}},
		"the phase is settled": {"once", phased(three(ended(0), ended(0), running()), corev1.PodFailed), nil, nil, outcome{Stop: is("s3")}},

		"virtual": {
			"an image ends what still runs there; nobody could carry out a request", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv), sidecar("s2", ended(0), imageEnv), sidecar("s3", running(), imageEnv, killEnv, ignoreEnv)),
			virtualNode(), nil,
			outcome{Images: map[string]string{"s1": "exit:1", "s3": "exit:1"}},
		},
		"virtual, main runs": {"it may still need its sidecar", newPod(never, mainOf("main", running()), sidecar("s1", running(), imageEnv)), virtualNode(), nil, outcome{}},
		"virtual, again": {
			"the image is set; that it has not ended is for the node", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv).with(func(c *corev1.Container) { c.Image = "exit:1" })),
			virtualNode(), nil,
			outcome{Notes: is("SidecarImageSet s1")},
		},
		"virtual, no image": {"nobody can stop it", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), virtualNode(), nil, outcome{Notes: is("SidecarNoImage s1")}},
		"no node":           {"it may be virtual", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "none"}}, nil, outcome{After: time.Minute, Notes: is("NodeUnknown job")}},

		"under way":             {"", three(running(), running(), running()), nil, made("s1", "s2"), outcome{Notes: is("SidecarLater s3", "RequestUnderWay sidecar-termination-u1")}},
		"half way":              {"", three(ended(0), running(), running()), nil, made("s1", "s2"), outcome{Notes: is("SidecarLater s3", "RequestUnderWay sidecar-termination-u1")}},
		"it has done its work":  {"a request for containers that never start again never ends", three(ended(0), ended(0), running()), nil, made("s1", "s2"), outcome{Stop: is("s3"), Phase: corev1.PodSucceeded, Delete: "r1"}},
		"the last is under way": {"", phased(three(ended(0), ended(0), running()), corev1.PodSucceeded), nil, made("s3"), outcome{Notes: is("RequestUnderWay sidecar-termination-u1")}},
		"it is over":            {"", three(ended(0), ended(0), running()), nil, over(made("s1", "s2"), 20, "", succeeded, succeeded), outcome{Stop: is("s3"), Phase: corev1.PodSucceeded, Delete: "r1"}},
		"it is going":           {"another cannot be made before", three(running(), running(), running()), nil, deleting(made("s1", "s2")), outcome{After: 10 * time.Second, Notes: is("SidecarLater s3", "RequestUnderWay sidecar-termination-u1")}},
		"no daemon":             {"tried again when as long has passed as since the end", three(running(), ended(0), ended(0)), nil, over(made("s1"), 59, "daemon has not responded for a long time"), outcome{Stop: is("s1"), Delete: "r1"}},
		"no daemon, yet":        {"the pause is not over", three(running(), ended(0), ended(0)), nil, over(made("s1"), 80, "daemon has not responded for a long time"), outcome{After: 40 * time.Second, Notes: is("RequestFailed sidecar-termination-u1")}},
		"it cannot be stopped":  {"", three(running(), running(), ended(0)), nil, over(made("s1", "s2"), 30, "", failed, pending), outcome{Stop: is("s1", "s2"), Delete: "r1"}},
		"it came back":          {"stopped with an error, and the pod starts such again: nothing helps", newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", running(), killEnv), sidecar("s2", running(), killEnv)), nil, over(made("s1", "s2"), 30, "", succeeded, failed), outcome{Stop: is("s2"), Delete: "r1", Notes: is("SidecarCameBack s1")}},
		"all came back":         {"nothing helps", newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), nil, over(made("s1"), 30, "", succeeded), outcome{Notes: is("SidecarCameBack s1")}},
		"late":                  {"one that was not there for the request", newPod(never, mainOf("main", ended(0)), sidecar("s1", ended(0), killEnv), sidecar("s2", running(), killEnv)), nil, made("s1"), outcome{Stop: is("s2"), Delete: "r1"}},
		"without a time": {"it counts from its creation", three(running(), ended(0), ended(0)), nil, func() *request {
			r := over(made("s1"), 30, "")
			r.Status.CompletionTime, r.CreationTimestamp = nil, stamp(90)
			return r
		}(), outcome{After: 60 * time.Second, Notes: is("RequestFailed sidecar-termination-u1")}},

		"never ran":         {"a request for it is refused, with all others in it", newPod(never, mainOf("main", ended(0)), sidecar("s1", waitingFor("ErrImagePull"), killEnv).unstarted(), sidecar("s2", running(), killEnv)), nil, nil, outcome{Stop: is("s2"), Notes: is("SidecarNeverRan s1")}},
		"crashing":          {"it is stopped when it starts again", newPod(onFailure, mainOf("main", ended(0)), sidecar("s1", waitingFor("CrashLoopBackOff"), killEnv)), nil, nil, outcome{Stop: is("s1")}},
		"no ID is reported": {"it runs", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv).unstarted()), nil, nil, outcome{Stop: is("s1")}},
		"none is main":      {"of sidecars alone nothing has finished", newPod(never, sidecar("s1", running(), killEnv), sidecar("s2", running(), killEnv)), nil, nil, outcome{}},
		"too early":         {"not all are known", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv), sidecar("s2", running(), killEnv).unheard()), nil, nil, outcome{}},
		"of nobody":         {"a status of another name", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv), part{corev1.Container{Name: "x"}, status("y", ended(0))}), nil, nil, outcome{}},
		"terminating":       {"", terminating(newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv))), nil, nil, outcome{}},
		"pending":           {"", phased(newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), corev1.PodPending), nil, nil, outcome{}},
		"no sidecar":        {"", newPod(never, mainOf("main", ended(0)), mainOf("m2", ended(0))), nil, nil, outcome{}},
		"false":             {"only true is true", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv).with(func(c *corev1.Container) { c.Env[0].Value = "yes" })), nil, nil, outcome{}},
		"TRUE":              {"in any case", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv).with(func(c *corev1.Container) { c.Env[0].Value = "TrUe" })), nil, nil, outcome{Stop: is("s1")}},
		"from elsewhere":    {"only literal values are read", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv).with(func(c *corev1.Container) { c.Env[0].Value, c.Env[0].ValueFrom = "", &corev1.EnvVarSource{} })), nil, nil, outcome{}},
		"twice":             {"the last counts", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv, killEnv).with(func(c *corev1.Container) { c.Env[1].Value = "false" })), nil, nil, outcome{}},
		"ignored alone":     {"without the first variable it is a main container", newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), ignoreEnv)), nil, nil, outcome{}},
		"native sidecars":   {"the kubelet stops them", initialised(newPod(never, mainOf("main", ended(0)))), nil, nil, outcome{}},
		"its own policy": {
			"a main container that starts again has not finished",
			newPod(never, mainOf("main", ended(0)).with(func(c *corev1.Container) { c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways) }), sidecar("s1", running(), killEnv)), nil, nil,
			outcome{},
		},
		"its own policy, no": {
			"a main container that does not start again has",
			newPod(onFailure, mainOf("main", ended(1)).with(func(c *corev1.Container) { c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever) }), sidecar("s1", running(), killEnv)), nil, nil,
			outcome{Stop: is("s1")},
		},
		"its own rule":     {"42 starts again", newPod(never, ruled(42, "In", 42), sidecar("s1", running(), killEnv)), nil, nil, outcome{}},
		"its own rule, no": {"41 does not", newPod(never, ruled(41, "In", 42), sidecar("s1", running(), killEnv)), nil, nil, outcome{Stop: is("s1")}},
		"all but":          {"41 starts again", newPod(never, ruled(41, "NotIn", 42), sidecar("s1", running(), killEnv)), nil, nil, outcome{}},
		"all but, no":      {"42 does not", newPod(never, ruled(42, "NotIn", 42), sidecar("s1", running(), killEnv)), nil, nil, outcome{Stop: is("s1")}},
		"an unknown rule":  {"of a later Kubernetes", newPod(never, ruled(42, "Like", 42), sidecar("s1", running(), killEnv)), nil, nil, outcome{Stop: is("s1")}},
		"an empty rule":    {"of a later Kubernetes", newPod(never, ruled(42, "", 42), sidecar("s1", running(), killEnv)), nil, nil, outcome{Stop: is("s1")}},
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
			if (plan.Event != "") != (plan.Create != nil || plan.Images != nil) {
				t.Errorf("event %q", plan.Event)
			}
			if plan.Empty() != (c.want.Stop == nil && c.want.Images == nil && c.want.Phase == "" && c.want.Delete == "") {
				t.Errorf("empty: %t", plan.Empty())
			}
			if !plan.Empty() && !finish.Concerns(c.pod) {
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
	p.Spec.InitContainers = []corev1.Container{{Name: "i", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Env: []corev1.EnvVar{{Name: killEnv, Value: "true"}}}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{*status("i", running())}
	return p
}

// ruled is a main container with a rule of its own; none in it where there is no operator.
func ruled(code int32, operator string, codes ...int32) part {
	return mainOf("main", ended(code)).with(func(c *corev1.Container) {
		rule := corev1.ContainerRestartRule{Action: corev1.ContainerRestartRuleActionRestart}
		if operator != "" {
			rule.ExitCodes = &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOperator(operator), Values: codes}
		}
		c.RestartPolicy, c.RestartPolicyRules = ptr.To(corev1.ContainerRestartPolicyNever), []corev1.ContainerRestartRule{rule}
	})
}

// The request is the reference's, to the letter.
func TestRequest(t *testing.T) {
	plan := finish.Next(finish.Input{Pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv)), Node: realNode(), Now: at(1)})
	want := &request{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sidecar-termination-u1", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: "job", UID: "u1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: "job", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "s1"}},
			Strategy: &v1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true, FailurePolicy: "Ignore"},
		},
	}
	if diff := cmp.Diff(want, plan.Create); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "The others have finished: stopping sidecars s1 by ContainerRecreateRequest sidecar-termination-u1"; plan.Event != want {
		t.Errorf("event %q", plan.Event)
	}
}

// The pauses between requests grow, and end growing.
func TestPauses(t *testing.T) {
	for name, c := range map[string]struct {
		why  string
		end  int
		want time.Duration
	}{
		"at once":   {"ten seconds at least", 2, 10 * time.Second},
		"soon":      {"", 60, time.Minute},
		"later":     {"", 150, 150 * time.Second},
		"very late": {"five minutes at most", 4000, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(never, mainOf("m1", ended(0)), mainOf("main", ended(0)), sidecar("s1", running(), killEnv))
			pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = stamp(-100)
			in := finish.Input{Pod: pod, Node: realNode(), Request: over(made("s1"), c.end, "no"), Now: at(c.end)}
			if got := finish.Next(in); got.RequeueAfter != c.want || !got.Empty() {
				t.Errorf("%s: %s, %+v", c.why, got.RequeueAfter, got)
			}
			in.Now = in.Now.Add(c.want)
			if got := finish.Next(in); got.Empty() || got.Delete != "r1" {
				t.Errorf("after the pause: %+v", got)
			}
		})
	}
}

func TestWrites(t *testing.T) {
	data := func(w *write.Write) string {
		text, err := w.Data()
		if err != nil {
			t.Fatal(err)
		}
		return string(w.Type) + " " + w.Subresource + " " + string(text)
	}
	pod := newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), imageEnv), sidecar("s2", running(), imageEnv))
	in := finish.Input{Pod: pod, Node: virtualNode(), Now: at(1)}
	action := finish.Next(in)
	want := `application/strategic-merge-patch+json  {"metadata":{"resourceVersion":"5","uid":"u1"},"spec":{"containers":[{"image":"exit:1","name":"s1"},{"image":"exit:1","name":"s2"}]}}`
	if writes := action.Writes(in); len(writes) != 1 || data(writes[0]) != want {
		t.Errorf("%d writes, %s", len(writes), data(writes[0]))
	}
	if want := "The main containers have finished: sidecars s1, s2 get the image that ends them"; action.Event != want {
		t.Errorf("event %q", action.Event)
	}
	in = finish.Input{Pod: newPod(never, mainOf("main", ended(0)), sidecar("s1", running(), killEnv, ignoreEnv)), Node: realNode(), Now: at(200)}
	in.Request = over(made("s0"), 3, "")
	writes := finish.Next(in).Writes(in)
	if len(writes) != 3 || writes[1].Verb != write.Delete || writes[1].Object.GetUID() != "r1" || writes[2].Verb != write.Create {
		t.Fatalf("%d writes: %+v", len(writes), writes)
	}
	want = `application/strategic-merge-patch+json status {"metadata":{"resourceVersion":"5","uid":"u1"},"status":{"conditions":[{"type":"SidecarTerminated","status":"True","lastProbeTime":null,` +
		`"lastTransitionTime":"2026-11-21T12:03:20Z","message":"Terminated by Sidecar Terminator"}],"phase":"Succeeded"}}`
	if got := data(writes[0]); got != want {
		t.Errorf("%s", got)
	}
}
