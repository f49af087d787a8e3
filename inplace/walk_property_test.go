package inplace_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/write"
)

// rollout leads one pod from template to template, while its node does in its own time what is written.
type rollout struct {
	r       *rand.Rand
	k       *kubelet
	options inplace.Policy
	rules   inplace.Policy
	grace   int32
	now     time.Time
	// templates by revision, and the one that is wanted.
	templates []*corev1.PodTemplateSpec
	wanted    int
	// older are versions of the pod that a slow reader may still see.
	older []*corev1.Pod
	// halfway is between the resize of an update and its other writes.
	halfway         bool
	writes, decided int
	story           []string
	failed          string
	overtaken       bool
	sinceWanted     int
}

func (o *rollout) tell(format string, args ...any) {
	o.story = append(o.story, o.now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

func (o *rollout) fail(format string, args ...any) {
	if o.failed == "" {
		o.failed = fmt.Sprintf(format, args...)
	}
}

func newRollout(r *rand.Rand) (*rollout, error) {
	o := &rollout{
		r: r, now: noon(),
		rules: inplace.Policy{
			Unready: oneOf(r, inplace.UnreadyOnRestart, inplace.UnreadyAlways),
			Relabel: oneOf(r, inplace.RelabelFirst, inplace.RelabelLast, inplace.RelabelDone),
		},
		options: inplace.Policy{Env: inplace.EnvRestart, Resources: oneOf(r, inplace.ResourcesAdded, inplace.ResourcesFixed)},
		grace:   oneOf(r, int32(0), 0, 5),
	}
	gate, daemon := r.IntN(4) > 0, r.IntN(2) == 0
	if !gate || !daemon {
		o.options.Env = oneOf(r, inplace.EnvBlock, inplace.EnvIgnore) // no daemon would restart the containers
	}
	first := o.first()
	if !gate {
		noGate(first)
	}
	o.templates = []*corev1.PodTemplateSpec{first}
	pod := running(first, "r-0")
	pod.UID = "uid"
	if r.IntN(2) == 0 {
		pod.Labels["others"] = "label"
		pod.Finalizers = append(pod.Finalizers, "others/finalizer")
	}
	if r.IntN(2) == 0 {
		pod.Status.Conditions = pod.Status.Conditions[:2] // a new pod
	}
	var err error
	daemon = daemon && o.options.Env != inplace.EnvIgnore // it would not let variables be
	names := oneOf(r, "", "whole", "digest")
	o.k, err = start(pod, daemon, names)
	return o, err
}

func (o *rollout) first() *corev1.PodTemplateSpec {
	t := template()
	for i := range 1 + o.r.IntN(3) {
		c := container(fmt.Sprintf("c%d", i), "app:1")
		if o.r.IntN(2) == 0 {
			launch(o.r.IntN(3))(&c)
		}
		if o.r.IntN(2) == 0 {
			fed("FED", oneOf(o.r, "metadata.labels['a']", "metadata.annotations['b/c']"))(&c)
		}
		requests("cpu", "1", "memory", "1Gi")(&c)
		if o.r.IntN(3) == 0 {
			restartsOn(oneOf(o.r, corev1.ResourceCPU, corev1.ResourceMemory))(&c)
		}
		t.Spec.Containers = append(t.Spec.Containers, c)
	}
	for range o.r.IntN(3) {
		randomMetadata(o.r, t)
	}
	return t
}

// want turns to another template: an older one again, or a new one.
func (o *rollout) want() {
	if o.halfway {
		return // see the doubt in the comment of TestRollouts
	}
	next := o.r.IntN(len(o.templates) + 1)
	if next == len(o.templates) {
		t := o.templates[o.wanted].DeepCopy()
		for range 1 + o.r.IntN(4) {
			c := &t.Spec.Containers[o.r.IntN(len(t.Spec.Containers))]
			switch o.r.IntN(5) {
			case 0, 1:
				c.Image = oneOf(o.r, "app:1", "app:2", "app:3", "app:1b", "docker.io/library/app:1")
			case 2:
				c.Resources.Requests[oneOf(o.r, corev1.ResourceCPU, corev1.ResourceMemory)] = amounts("x",
					oneOf(o.r, "1", "2", "3"))["x"]
			default:
				randomMetadata(o.r, t)
			}
		}
		for _, have := range o.templates {
			if _, err := inplace.Diff(have, t, o.options); err != nil {
				return
			}
			if _, err := inplace.Diff(t, have, o.options); err != nil {
				return
			}
		}
		o.templates = append(o.templates, t)
	}
	if next != o.wanted {
		done, _ := inplace.Completed(o.k.pod, o.rules)
		o.overtaken = o.overtaken || !done || o.k.undone() != "" ||
			inplace.RevisionOf(o.k.pod, o.rules) != fmt.Sprintf("r-%d", o.wanted)
		o.wanted, o.sinceWanted = next, 0
		o.tell("want r-%d", next)
	}
}

// decide asks what to do with a version of the pod.
func (o *rollout) decide(pod *corev1.Pod) inplace.Action {
	o.decided++
	var at int
	if _, err := fmt.Sscanf(inplace.RevisionOf(pod, o.rules), "r-%d", &at); err != nil {
		o.fail("the revision label is lost: %v", pod.Labels)
		return inplace.Action{}
	}
	c, err := inplace.Diff(o.templates[at], o.templates[o.wanted], o.options)
	if err != nil {
		o.fail("%v", err)
		return inplace.Action{}
	}
	before := pod.DeepCopy()
	a, err := inplace.Next(inplace.Update{
		Pod: pod, Change: c, Revision: fmt.Sprintf("r-%d", o.wanted), GraceSeconds: o.grace,
	}, o.rules, o.now)
	switch {
	case err != nil:
		o.fail("%v", err)
	case a.Verdict == inplace.Wait &&
		(a.After <= 0 || len(a.Notes) == 0 || a.Notes[0].Text == "" || a.Notes[0].Object != pod.Name):
		o.fail("a wait without reason or time: %v", a)
	case a.Verdict == inplace.Recreate:
		o.fail("recreate: %v", a.Notes)
	case o.decided%8 == 0 && !apiequality.Semantic.DeepEqual(before, pod):
		o.fail("the pod is changed")
	}
	return a
}

// act decides on a version of the pod, and writes to the stored one.
func (o *rollout) act(pod *corev1.Pod, stale bool) {
	a := o.decide(pod)
	if a.Verdict != inplace.Write || o.failed != "" {
		return
	}
	next, refused, err := apply(o.k.pod, a.Write)
	switch {
	case err != nil && (!stale || !errors.Is(err, errNothing)):
		o.fail("%v", err)
		return
	case refused != nil && !stale:
		o.fail("a write of what was just seen is refused: %v", refused)
		return
	case next == nil:
		return
	}
	o.tell("write %q (stale: %v) -> %s %s", a.Write.Subresource, stale, next.Labels[kruise.PodRevisionLabelKey],
		next.Annotations[kruise.InPlaceUpdateStateKey])
	o.writes++
	if !stale {
		o.sinceWanted++
	}
	if a.Write.Subresource != write.Status {
		o.halfway = a.Write.Subresource == write.Resize
	}
	back := condition(o.k.pod, kruise.InPlaceUpdateReady).Status == corev1.ConditionFalse &&
		condition(next, kruise.InPlaceUpdateReady).Status == corev1.ConditionTrue
	o.keep()
	o.relabelled(o.k.pod, next)
	o.k.pod = next
	if late := o.k.undone(); back && late != "" {
		o.fail("back in traffic too soon: %s", late)
	}
}

// relabelled expects that the revision label changes last, where that is the policy.
func (o *rollout) relabelled(before, after *corev1.Pod) {
	is := after.Labels[kruise.PodRevisionLabelKey]
	if o.rules.Relabel != inplace.RelabelLast || before.Labels[kruise.PodRevisionLabelKey] == is {
		return
	}
	switch late := o.k.undone(); {
	case late != "":
		o.fail("%s is the label too soon: %s", is, late)
	case is != inplace.RevisionOf(after, o.rules):
		o.fail("%s is the label, and %s to come", is, inplace.RevisionOf(after, o.rules))
	}
}

// version counts a write of another writer.
func version(pod *corev1.Pod) {
	n, _ := strconv.Atoi(pod.ResourceVersion)
	pod.ResourceVersion = strconv.Itoa(n + 1)
}

// keep remembers the stored version for slow readers.
func (o *rollout) keep() {
	o.older = append(o.older, o.k.pod.DeepCopy())
	if len(o.older) > 4 {
		o.older = o.older[1:]
	}
}

// node does something with one container.
func (o *rollout) node() {
	i := o.r.IntN(len(o.k.pod.Spec.Containers))
	o.keep()
	name := o.k.pod.Spec.Containers[i].Name
	stopped, err := o.k.sync(i, o.now)
	if err == nil {
		err = o.k.tell(o.r.IntN(2) == 0)
	}
	if err != nil {
		o.fail("%v", err)
	}
	version(o.k.pod)
	if stopped {
		o.tell("node starts %s %s", name, o.k.pod.Spec.Containers[i].Image)
	}
	gated := len(o.k.pod.Spec.ReadinessGates) > 0
	if stopped && gated &&
		condition(o.k.pod, kruise.InPlaceUpdateReady).Status != corev1.ConditionFalse {
		o.fail("%s stops in traffic", name)
	}
}

// step is one thing that happens.
func (o *rollout) step(wild bool) {
	o.now = o.now.Add(oneOf(o.r, time.Second, 1500*time.Millisecond))
	switch n := o.r.IntN(20); {
	case n < 8:
		o.act(o.k.pod, false)
	case n < 10 && len(o.older) > 0 && wild:
		o.act(oneOf(o.r, o.older...), true)
	case n == 10 && wild:
		o.want()
	default:
		o.node()
	}
	o.readBack()
}

// ended says what the pod still lacks; empty for nothing.
func (o *rollout) ended() string {
	pod, want := o.k.pod, o.templates[o.wanted]
	if pod.Labels[kruise.PodRevisionLabelKey] != fmt.Sprintf("r-%d", o.wanted) {
		return "the revision"
	}
	if a := o.decide(pod); a.Verdict != inplace.Complete {
		return "it is not done: " + told(a, nil)
	}
	if done, n := inplace.Completed(pod, o.rules); !done || !inplace.Settled(pod, o.rules) {
		return "it is done but not complete: " + n.Text
	}
	if late := o.k.undone(); late != "" {
		return late
	}
	if left, err := lacks(pod, want, o.options); err != nil || !left.Empty() {
		return fmt.Sprintf("%v, %v", left, err)
	}
	for _, t := range o.templates {
		for key := range t.Labels {
			if pod.Labels[key] != want.Labels[key] {
				return "label " + key
			}
		}
		for key := range t.Annotations {
			if pod.Annotations[key] != want.Annotations[key] {
				return "annotation " + key
			}
		}
		for _, f := range t.Finalizers {
			if slices.Contains(pod.Finalizers, f) != slices.Contains(want.Finalizers, f) {
				return "finalizer " + f
			}
		}
	}
	if condition(pod, corev1.PodReady).Status != corev1.ConditionTrue {
		return "ready"
	}
	if pod.Labels["others"] != "" && !slices.Contains(pod.Finalizers, "others/finalizer") {
		return "others' finalizer"
	}
	return ""
}

// TestRollouts leads pods through random updates, with a node that does things at random moments, readers that see
// old versions of the pod, and revisions that change before the last is reached. It always ends with the pod as
// the template wants it, ready, after few writes; and meanwhile no container stops in traffic, and no pod is back in
// traffic before its node has done everything.
//
// One thing is left out: another revision never comes between the resize and the other writes of an update. Nothing in
// the pod reports the resize then, so a change to another revision compares the resources.
func TestRollouts(t *testing.T) {
	r := newRand(t)
	decided, updates := 0, 0
	for range 1_000 / fewer() {
		o, err := newRollout(r)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 + r.IntN(40) {
			if o.r.IntN(15) == 0 {
				o.want()
			}
			if o.step(true); o.failed != "" {
				break
			}
		}
		o.sinceWanted = 0
		for i := 0; o.failed == "" && o.ended() != ""; i++ {
			if o.step(false); i > 1_000 {
				o.fail("it does not end: %s", o.ended())
			}
		}
		// Out, a grace period, three batches of two writes each, back, and the label.
		if o.sinceWanted > 10 {
			o.fail("%d writes", o.sinceWanted)
		}
		if o.failed != "" {
			for _, line := range o.story {
				t.Log(line)
			}
			t.Fatalf("%s\nrules %+v, options %+v, daemon %v, names %q, grace %d\npod %s\nwanted %s",
				o.failed, o.rules, o.options, o.k.daemon, o.k.names, o.grace, encoded(t, o.k.pod),
				encoded(t, o.templates[o.wanted]))
		}
		decided, updates = decided+o.decided, updates+len(o.templates)
	}
	t.Logf("%d decisions, %d templates", decided, updates)
	// About 680 are drawn in the shortest run, with a deviation of 53.
	if decided < 10_000/fewer() {
		t.Errorf("want more decisions than %d", decided)
	}
}

// lacks returns what a pod lacks of a template. What only the pod has is left out of its metadata.
func lacks(pod *corev1.Pod, to *corev1.PodTemplateSpec, p inplace.Policy) (*inplace.Change, error) {
	to = to.DeepCopy()
	with := func(of, others map[string]string) map[string]string {
		all := maps.Clone(of)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, others)
		return all
	}
	to.Labels, to.Annotations = with(pod.Labels, to.Labels), with(pod.Annotations, to.Annotations)
	to.Labels[kruise.PodRevisionLabelKey] = pod.Labels[kruise.PodRevisionLabelKey]
	to.Finalizers = pod.Finalizers
	return inplace.Diff(&corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, to, p)
}
