package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// groupKey is the label that joins the pods of a group: the name of its leader.
const groupKey = "simulation/group"

// turn is one reconcile of the workload: it observes, runs the pass of package workload, and sends its writes. From one
// turn to the next a process only remembers which writes it has repeated: all that counts is in the objects.
type turn struct {
	api *client
	now time.Time
	shop
	// revisions by name; pods are led from current to update.
	revisions       map[string]*appsv1.ControllerRevision
	current, update *appsv1.ControllerRevision
	limits          scale.Limits
	policy          inplace.Policy

	// plan, notes and after are for the caller.
	plan  scale.Result
	notes []note.Note
	after time.Duration
}

// reconcile takes one turn.
func (t *turn) reconcile() error {
	seen := t.api.read()
	if seen.version < t.api.wrote {
		return nil // what is read is older than what was written: the rest is on its way
	}
	t.shop = seen.shop
	if wrote, err := t.resolve(seen.revisions); wrote || err != nil {
		return err // what was written is read in the next turn
	}
	limits, err := t.Spec.limits()
	if err != nil {
		return err
	}
	t.limits = limits
	t.limits.NoRollback = t.current == t.update // then there is nothing to go back to
	pass, err := workload.Plan(t.input(seen.pods))
	if err != nil {
		return err
	}
	t.plan = pass.Result()
	for writes := pass.Next(); len(writes) > 0; writes = pass.Next() {
		t.send(pass, writes)
	}
	if len(pass.Result().Notes) == 0 {
		t.plan = pass.Result()
	}
	t.api.repeats = pass.Repeats()
	t.notes, t.after = pass.Notes()[len(pass.Result().Notes):], pass.RequeueAfter()
	if err := workload.Err(pass.Failures()); err != nil {
		return err
	}
	t.finish(pass.Pods())
	return nil
}

// send makes writes, and those that follow from their answers, in an order by chance. Creations keep theirs: what is to
// have the old revision comes first.
func (t *turn) send(pass *workload.Pass, writes []*workload.Write) {
	for len(writes) > 0 {
		k := 0
		if writes[0].Verb != write.Create {
			k = t.api.random.IntN(len(writes))
		}
		w := writes[k]
		writes = append(slices.Delete(slices.Clone(writes), k, k+1), t.answer(pass, w)...)
	}
}

func (t *turn) answer(pass *workload.Pass, w *workload.Write) []*workload.Write {
	pod, _ := w.Object.(*corev1.Pod)
	var err error
	switch w.Verb {
	case write.Create:
		pod, err = t.api.create(pod)
	case write.Delete:
		err = t.api.delete(pod)
	default:
		var data []byte
		if data, err = w.Data(); err == nil {
			pod, err = t.api.patch(change{pod: pod.Name, subresource: w.Subresource, kind: w.Type, data: data})
		}
	}
	if err != nil {
		return pass.Answer(t.now, w, nil, err)
	}
	return pass.Answer(t.now, w, pod, nil)
}

// resolve finds the revisions, and reports whether it had to write one.
func (t *turn) resolve(have []*appsv1.ControllerRevision) (wrote bool, err error) {
	data, err := revision.Encode(&t.Spec.Template)
	if err != nil {
		return false, err
	}
	r := revision.Resolve(revision.Input{Owner: t.Name, Data: data, Have: have, Current: t.Current})
	switch r.Verdict {
	case revision.Create:
		return true, t.api.createRevision(&appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Data: runtime.RawExtension{Raw: data}, Revision: r.Number,
		})
	case revision.Bump:
		t.api.numberRevision(r.Name, r.Number)
		return true, nil
	}
	if t.Current == "" {
		t.api.setCurrent(r.Name)
		return true, nil
	}
	t.current, t.update = r.Current, r.Update
	t.revisions = make(map[string]*appsv1.ControllerRevision, len(have))
	for _, h := range have {
		t.revisions[h.Name] = h
	}
	return false, nil
}

// input is the workload as the pass looks at it.
func (t *turn) input(pods []*corev1.Pod) workload.Input {
	in := workload.Input{
		Scale:     scale.Input{Now: t.now, Limits: t.limits, MinReadySeconds: t.Spec.MinReadySeconds, Hooks: t.Spec.Hooks},
		Instances: t.instances(pods), Update: stored(t.update), Current: stored(t.current),
		Strategy: workload.InPlaceIfPossible, GraceSeconds: t.Spec.GraceSeconds, Policy: t.policy, NeedsNode: true,
		Build: t.build, Repeats: t.api.repeats,
	}
	for _, r := range t.revisions {
		in.Revisions = append(in.Revisions, stored(r))
	}
	if t.Spec.Recreate {
		in.Strategy = workload.Recreate
	}
	if t.Spec.Paused {
		in.Scale.Updates = scale.UpdatesPaused
	}
	if t.Spec.Slots {
		in.Scale.Slots, in.Scale.InOrder, in.Scale.UnavailableFirst = t.slots(), t.Spec.InOrder, true
		in.Scale.Limits.NoRollback = false
		if t.Spec.InOrder {
			in.Scale.Limits.MaxUnavailableScaling = nil
		}
	}
	if t.size() > 1 {
		for n := range t.size() {
			in.Members = append(in.Members, workload.Member{Name: strconv.Itoa(n)})
		}
	}
	return in
}

func stored(r *appsv1.ControllerRevision) workload.Revision {
	return workload.Revision{Name: r.Name, Data: r.Data.Raw}
}

func (t *turn) size() int { return max(t.Spec.Size, 1) }

func (t *turn) slots() []string {
	names := make([]string, t.Spec.Replicas)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.Name, i)
	}
	return names
}

// instances are the pods, or the groups of pods, that are scaled as one.
func (t *turn) instances(pods []*corev1.Pod) []workload.Instance {
	if t.size() == 1 {
		return workload.Pods(pods)
	}
	byName := map[string]workload.Instance{}
	for _, pod := range pods {
		i := workload.Instance{Name: pod.Name, Pods: byName[pod.Name].Pods}
		member := "0"
		if leader := pod.Labels[groupKey]; leader != "" {
			i = workload.Instance{Name: leader, Pods: byName[leader].Pods}
			member = pod.Name[len(leader)+1:]
		}
		i.Pods = append(i.Pods, workload.Pod{Pod: pod, Member: member})
		byName[i.Name] = i
	}
	return slices.Collect(maps.Values(byName))
}

// build makes the pods of creations.
func (t *turn) build(creations []workload.Creation) ([][]write.Object, error) {
	all := make([][]write.Object, len(creations))
	for k, c := range creations {
		template, err := revision.Decode(t.revisions[c.Revision].Data.Raw)
		if err != nil {
			return nil, err
		}
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
		switch {
		case c.Instance != "":
			pod.Name = c.Instance + "-" + c.Member.Name
			pod.Labels[groupKey] = c.Instance
		case c.Slot != "":
			pod.Name = c.Slot
		default:
			pod.GenerateName = t.Name + "-"
		}
		pod.Labels[kruise.PodRevisionLabelKey] = c.Revision
		pod.Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStatePreparingNormal)
		inplace.EnsureReadinessGate(&pod.Spec)
		all[k] = []write.Object{pod}
	}
	return all, nil
}

// finish makes the update revision the current one when all pods have it.
func (t *turn) finish(active []*corev1.Pod) {
	progress := revision.Progress{
		Current: t.Current, Update: t.update.Name, Replicas: t.Spec.Replicas * int32(t.size()), Existing: int32(len(active)),
	}
	for _, pod := range active {
		if pod.Labels[kruise.PodRevisionLabelKey] == t.update.Name {
			progress.Updated++
		}
	}
	if current, promoted := revision.Promote(progress); promoted {
		t.api.setCurrent(current)
	}
}

// groupOf is the name of the instance of a pod.
func groupOf(pod *corev1.Pod) string {
	if group := pod.Labels[groupKey]; group != "" {
		return group
	}
	return pod.Name
}
