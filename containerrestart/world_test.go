package containerrestart_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/write"
)

// world is a node with one pod, its kubelet and runtime, an API server, a manager and a daemon. Both of these carry out
// what they get, on what they see, which may be older than what is.
type world struct {
	*rand.Rand
	now      time.Time
	version  int
	stored   map[string]*request // by name
	pod      *corev1.Pod
	runtime  []containerrestart.Container
	ways     map[string]way // by container
	noDaemon bool
	// seen is what the daemon sees of the stored requests, and attempts are what it remembers.
	seen     map[string]*request
	attempts []containerrestart.Attempt
	kills    []*kill
	stopped  map[string]bool // request and container
	lines    []string
	problem  string
}

// way is how a container behaves.
type way struct {
	unstoppable, crashing, neverReady bool
	hook                              int // how many seconds a kill takes
	slow                              int // how many seconds it takes to be ready
}

// kill is one that the runtime carries out.
type kill struct {
	request   types.UID
	name      string
	container string
	id        string
	left      int
	orphan    bool // its daemon died
}

func newWorld(seed int64) *world {
	w := &world{
		Rand:    rand.New(rand.NewSource(seed)),
		now:     at(0),
		stored:  map[string]*request{},
		seen:    map[string]*request{},
		pod:     newPod(),
		ways:    map[string]way{},
		stopped: map[string]bool{},
	}
	for _, name := range []string{"app", "log", "mesh"} {
		w.runtime = append(w.runtime, up(name, 0, -60))
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.problem == "" {
		w.problem = fmt.Sprintf(format, args...)
		w.say("PROBLEM", "%s", w.problem)
	}
}

func (w *world) say(who, format string, args ...any) {
	w.lines = append(w.lines,
		fmt.Sprintf("%5.1f  %-7s  %s", w.now.Sub(at(0)).Seconds(), who, fmt.Sprintf(format, args...)))
}

func (w *world) text() string { return strings.Join(w.lines, "\n") + "\n" }

// create admits and stores a request.
func (w *world) create(name string, change ...func(*request)) {
	ask := asked(append([]func(*request){func(r *request) { r.Name, r.UID = name, types.UID("uid-"+name) }}, change...)...)
	r, faults := containerrestart.Admit(ask, w.pod, &corev1.Node{})
	if faults != nil {
		w.say("user", "cannot create %s: %v", name, faults.ToAggregate())
		return
	}
	r.CreationTimestamp.Time = w.now.Truncate(time.Second)
	w.store(r)
	w.say("user", "creates %s", name)
}

func (w *world) store(r *request) {
	w.version++
	r.ResourceVersion = fmt.Sprint(w.version)
	if r.DeletionTimestamp != nil && len(r.Finalizers) == 0 {
		delete(w.stored, r.Name)
		return
	}
	w.stored[r.Name] = r
}

func (w *world) delete(name string) {
	if r := w.stored[name]; r != nil {
		w.say("user", "deletes %s", name)
		r = r.DeepCopy()
		now := stamp(w.now.Sub(at(0)).Seconds())
		r.DeletionTimestamp = &now
		w.store(r)
	}
}

// write sends a patch of a status, and says whether it arrived.
func (w *world) write(who, name string, patch *write.Write) bool {
	body, err := patch.Data()
	if err != nil {
		w.fail("%v", err)
		return false
	}
	var sent struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
		Status map[string]any
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		w.fail("%v", err)
	}
	old := w.stored[name]
	if old == nil || old.UID != sent.Metadata.UID ||
		sent.Metadata.ResourceVersion != "" && sent.Metadata.ResourceVersion != old.ResourceVersion {
		return false
	}
	var status map[string]any
	if err := json.Unmarshal([]byte(text(old.Status)), &status); err != nil {
		w.fail("%v", err)
	}
	maps.Copy(status, sent.Status)
	maps.DeleteFunc(status, func(_ string, v any) bool { return v == nil })
	r := old.DeepCopy()
	r.Status = request{}.Status
	if err := json.Unmarshal([]byte(text(status)), &r.Status); err != nil {
		w.fail("%v", err)
	}
	if old.Status.CompletionTime != nil && (!r.Status.CompletionTime.Equal(old.Status.CompletionTime) ||
		r.Status.Phase != completed || r.Status.Message != old.Status.Message) {
		w.fail("%s ended twice: %s, then %s", name, text(old.Status), text(r.Status))
	}
	if sent.Metadata.ResourceVersion != "" && text(old.Status) == text(r.Status) {
		w.fail("%s writes what is there", who)
	}
	w.tell(who, old, r)
	w.store(r)
	return true
}

// tell says what is new in a status.
func (w *world) tell(who string, old, r *request) {
	if old.Status.Phase != r.Status.Phase {
		w.say(who, "%s is %s %s", r.Name, r.Status.Phase, r.Status.Message)
	}
	for i, st := range r.Status.ContainerRecreateStates {
		if i >= len(old.Status.ContainerRecreateStates) || old.Status.ContainerRecreateStates[i] != st {
			w.say(who, "%s: %s is %s %s", r.Name, st.Name, st.Phase, st.Message)
		}
	}
	for _, c := range r.Status.Conditions {
		if !slices.Contains(old.Status.Conditions, c) {
			w.say(who, "%s: condition %s is %s", r.Name, c.Type, c.Status)
		}
	}
	if text(old.Status.ContainerStatusSnapshot) != text(r.Status.ContainerStatusSnapshot) {
		var known []string
		for _, s := range r.Status.ContainerStatusSnapshot {
			known = append(known, s.ContainerID+map[bool]string{true: " ready", false: " not ready"}[s.Ready])
		}
		w.say(who, "%s: snapshot of %s", r.Name, strings.Join(known, ", "))
	}
}

func (w *world) requests(from map[string]*request) []*request {
	all := slices.Collect(maps.Values(from))
	slices.SortFunc(all, func(a, b *request) int { return strings.Compare(a.Name, b.Name) })
	if w.Rand != nil {
		w.Shuffle(len(all), reflect.Swapper(all))
	}
	return all
}

// manage lets the manager look at all requests.
func (w *world) manage() {
	for _, name := range slices.Sorted(maps.Keys(w.stored)) {
		r := w.stored[name]
		input := containerrestart.Input{Request: r, Pod: w.pod, Others: w.requests(w.stored), Now: w.now}
		plan := containerrestart.Supervise(input)
		if w.Intn(4) == 0 { // it takes long
			before := text(input)
			again := containerrestart.Supervise(input)
			if text(input) != before {
				w.fail("the input was changed")
			}
			w.Shuffle(len(input.Others), reflect.Swapper(input.Others))
			if more := containerrestart.Supervise(input); toldPlan(plan) != toldPlan(again) || toldPlan(plan) != toldPlan(more) {
				w.fail("several plans for one situation:\n%s\n%s\n%s", toldPlan(plan), toldPlan(again), toldPlan(more))
			}
		}
		if r.Status.CompletionTime != nil && plan.Write != nil {
			w.fail("the manager writes the status of a request that has ended")
		}
		w.carryOut(r, plan)
	}
}

func toldPlan(p containerrestart.Plan) string {
	var body, pod []byte
	if p.Write != nil {
		body, _ = p.Write.Data()
	}
	if p.Pod != nil {
		pod, _ = p.Pod.Data()
	}
	p.Write, p.Pod = nil, nil
	return text(p) + string(body) + string(pod)
}

func (w *world) carryOut(r *request, plan containerrestart.Plan) {
	if plan.AddFinalizer {
		r = r.DeepCopy()
		r.Finalizers = append(r.Finalizers, finalizer)
		w.store(r)
		w.say("manager", "%s gets the finalizer", r.Name)
		return
	}
	if plan.Pod != nil {
		before, after := w.pod, patched(w.pod, plan.Pod)
		w.pod = after
		for _, c := range changes(before, after) {
			w.say("manager", "%s of the pod is %s", c.Type, c.Status)
		}
	}
	if plan.Write != nil {
		w.write("manager", r.Name, plan.Write)
		return
	}
	if plan.RemoveFinalizer || plan.RemoveActive {
		r = r.DeepCopy()
		if plan.RemoveFinalizer {
			r.Finalizers = slices.DeleteFunc(r.Finalizers, func(f string) bool { return f == finalizer })
		}
		if plan.RemoveActive {
			delete(r.Labels, activeLabel)
			w.say("manager", "%s is no longer active", r.Name)
		}
		w.store(r)
	}
	if plan.Delete {
		w.say("manager", "deletes %s", r.Name)
		delete(w.stored, r.Name)
	}
}

// serve lets the daemon look at the requests that it sees, until there is nothing to do.
func (w *world) serve(fresh bool) {
	if w.noDaemon {
		return
	}
	for range 30 {
		if fresh {
			w.seen = maps.Clone(w.stored)
		}
		if !w.pass() || !fresh {
			return
		}
	}
	w.fail("the daemon never rests")
}

func (w *world) pass() (acted bool) {
	for i := range w.attempts {
		gone := true
		for _, r := range w.seen {
			gone = gone && r.UID != w.attempts[i].Request
		}
		if gone && !w.attempts[i].Done {
			w.cancel(w.attempts[i].Request)
		}
	}
	for _, r := range w.requests(w.seen) {
		if r.Labels[activeLabel] != "true" && !slices.ContainsFunc(w.attempts, func(a containerrestart.Attempt) bool {
			return a.Request == r.UID
		}) {
			continue
		}
		work := containerrestart.Work{
			Request:    r,
			Others:     w.requests(w.seen),
			Pod:        w.pod,
			Containers: slices.Clone(w.runtime),
			Attempts:   slices.Clone(w.attempts),
			Now:        w.now,
		}
		action := containerrestart.Next(work)
		if w.Intn(4) == 0 { // it takes long
			before := text(work)
			again := containerrestart.Next(work)
			if text(work) != before {
				w.fail("the input was changed")
			}
			w.Shuffle(len(work.Containers), reflect.Swapper(work.Containers))
			w.Shuffle(len(work.Others), reflect.Swapper(work.Others))
			if more := containerrestart.Next(work); toldOf(action) != toldOf(again) || toldOf(action) != toldOf(more) {
				w.fail("several actions for one situation:\n%s\n%s\n%s", toldOf(action), toldOf(again), toldOf(more))
			}
		}
		switch action.Verdict {
		case containerrestart.DoWrite:
			acted = w.write("daemon", r.Name, action.Write) || acted
		case containerrestart.DoKill:
			acted = true
			w.begin(r, action.Kill)
		case containerrestart.DoCancel:
			w.cancel(r.UID)
			acted = true
		case containerrestart.DoWait:
			if len(action.Notes) == 0 && action.After == 0 && r.Status.Phase != "" {
				w.fail("%s waits, and nobody knows what for", r.Name)
			}
		}
	}
	return acted
}

// cancel gives up what is under way for a request.
func (w *world) cancel(r types.UID) {
	for _, k := range w.kills {
		if k.request == r && !k.orphan {
			w.say("daemon", "gives up stopping %s", k.id)
		}
	}
	w.kills = slices.DeleteFunc(w.kills, func(k *kill) bool { return k.request == r && !k.orphan })
	for i := range w.attempts {
		if a := &w.attempts[i]; a.Request == r && !a.Done {
			a.Done, a.Err = true, errors.New("canceled")
		}
	}
}

func toldOf(a containerrestart.Action) string {
	var body []byte
	if a.Write != nil {
		body, _ = a.Write.Data()
	}
	a.Write = nil
	return text(a) + string(body)
}

// begin stops a container, and looks whether that is allowed.
func (w *world) begin(r *request, k *containerrestart.Kill) {
	for _, other := range w.kills {
		if other.request != r.UID && !other.orphan {
			w.fail("%s begins while a container is stopped for another request", r.Name)
		}
	}
	if first := containerrestart.Queue("u1", w.requests(w.seen)); len(first) == 0 || first[0].UID != r.UID {
		w.fail("%s stops a container and is not the first", r.Name)
	}
	i := slices.IndexFunc(r.Status.ContainerRecreateStates, func(s state) bool { return s.Name == k.Container })
	for _, st := range r.Status.ContainerRecreateStates[:max(i, 0)] {
		if r.Spec.Strategy.OrderedRecreate && st.Phase != succeeded && st.Phase != failed {
			w.fail("%s is stopped before %s is up", k.Container, st.Name)
		}
	}
	if w.stopped[r.Name+"/"+k.Container] {
		w.fail("%s is stopped twice for %s", k.Container, r.Name)
	}
	w.attempts = append(w.attempts, containerrestart.Attempt{Request: r.UID, Container: k.Container})
	w.kills = append(w.kills, &kill{
		request: r.UID, name: r.Name, container: k.Container, id: k.ContainerID, left: w.ways[k.Container].hook,
	})
	w.say("daemon", "stops %s for %s", k.ContainerID, r.Name)
}

// die lets the daemon forget all. Another one takes over, with what is stored; kills that were under way may
// or may not have reached the runtime.
func (w *world) die() {
	w.say("daemon", "dies, and another one starts")
	w.attempts, w.seen = nil, maps.Clone(w.stored)
	for _, k := range w.kills {
		k.orphan = true
	}
	w.kills = slices.DeleteFunc(w.kills, func(*kill) bool { return w.Intn(2) == 0 })
}

// tick lets a second pass on the node.
func (w *world) tick() {
	w.now = w.now.Add(time.Second)
	w.stop()
	for i := range w.runtime {
		w.start(&w.runtime[i])
	}
	if w.pod == nil {
		return
	}
	w.pod = w.pod.DeepCopy()
	for _, list := range [][]corev1.ContainerStatus{w.pod.Status.ContainerStatuses, w.pod.Status.InitContainerStatuses} {
		for i := range list {
			w.report(&list[i])
		}
	}
}

// stop carries kills on.
func (w *world) stop() {
	w.kills = slices.DeleteFunc(w.kills, func(k *kill) bool {
		if k.left--; k.left > 0 {
			return false
		}
		var err error
		switch i := slices.IndexFunc(w.runtime, func(c containerrestart.Container) bool { return c.ID == k.id }); {
		case w.ways[k.container].unstoppable:
			err = errors.New("it does not stop")
		case i >= 0 && w.runtime[i].State == containerrestart.StateRunning:
			c := &w.runtime[i]
			c.State, c.ExitCode, c.Reason = containerrestart.StateExited, 143, "Error"
			w.say("runtime", "%s has stopped", k.id)
			w.stopped[k.name+"/"+k.container] = true
		}
		for i := range w.attempts {
			if a := &w.attempts[i]; !k.orphan && a.Request == k.request && a.Container == k.container {
				a.Done, a.Err = true, err
			}
		}
		return true
	})
}

// start starts the next container of a name, or lets one crash. The world keeps only the newest of each.
func (w *world) start(c *containerrestart.Container) {
	switch age := w.now.Sub(c.Started); {
	case c.State == containerrestart.StateExited && w.pod != nil && w.pod.DeletionTimestamp == nil:
		*c = up(c.Name, int(c.RestartCount)+1, w.now.Sub(at(0)).Seconds())
		w.say("kubelet", "starts %s", c.ID)
	case w.ways[c.Name].crashing && c.RestartCount > 0 && age >= time.Second && c.State == containerrestart.StateRunning:
		c.State, c.ExitCode, c.Reason = containerrestart.StateExited, 1, "Error"
	}
}

// report writes the status of a container as the kubelet does.
func (w *world) report(s *corev1.ContainerStatus) {
	for _, c := range w.runtime {
		if c.Name != s.Name {
			continue
		}
		*s = running(c.Name, int(c.RestartCount), c.Started.Sub(at(0)).Seconds())
		age := int(w.now.Sub(c.Started).Seconds())
		if s.Ready = c.RestartCount == 0 ||
			age > w.ways[c.Name].slow && !w.ways[c.Name].neverReady; c.State == containerrestart.StateExited {
			s.Ready, s.State = false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: c.ExitCode}}
		}
	}
}
