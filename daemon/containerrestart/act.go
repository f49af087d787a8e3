package containerrestart

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/containers"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// mostSteps bounds how often one pass acts on a request. No request needs as many.
const mostSteps = 20

// act carries out what is decided about the requests of one pod.
type act struct {
	*Reconciler
	*snapshot

	// first is the place of the request of a pod that runs.
	first map[types.UID]int
	// after is when to look again; 0 for when something happens.
	after time.Duration
}

// wake looks again after a time, or sooner.
func (a *act) wake(after time.Duration) { a.after = passes.Sooner(a.after, after) }

// queued returns for each pod the place of the request that runs. All others wait for it, however many they are.
func (s *snapshot) queued() map[types.UID]int {
	first := map[types.UID]int{}
	for i, r := range s.requests {
		if _, known := first[podUID(r)]; known {
			continue
		}
		if queue := containerrestart.Queue(podUID(r), s.requests); len(queue) > 0 {
			first[podUID(r)] = slices.Index(s.requests, queue[0])
		} else {
			first[podUID(r)] = i
		}
	}
	return first
}

// serve does all that can be done now about one request.
func (a *act) serve(ctx context.Context, i int) error {
	if a.podless(a.snapshot, a.requests[i]) {
		a.forget(a.requests[i], true)
		return nil
	}
	if first := a.first[podUID(a.requests[i])]; first != i && over(a.requests[first]) && !over(a.requests[i]) {
		a.wake(soon) // it has ended in this pass, and its event brings the next
		return nil
	}
	work, err := a.work(ctx, i)
	if err != nil {
		return err
	}
	for range mostSteps {
		work.Request, work.Attempts = a.requests[i], a.attempts(a.requests[i])
		action := containerrestart.Next(work)
		binding.LogNotes(ctx, action.Notes)
		switch action.Verdict {
		case containerrestart.DoWrite:
			if written, err := a.write(ctx, i, action.Write); err != nil || !written {
				return err
			}
		case containerrestart.DoKill:
			a.begin(ctx, work, *action.Kill)
		case containerrestart.DoCancel:
			a.forget(work.Request, true)
			return nil
		case containerrestart.DoWait:
			a.wake(action.After)
			return nil
		default:
			a.forget(work.Request, false)
			return nil
		}
	}
	a.wake(soon)
	return nil
}

// work is what there is to know about a request. Runtimes are asked only about one that is the first of its pod.
func (a *act) work(ctx context.Context, i int) (containerrestart.Work, error) {
	r, first := a.requests[i], a.first[podUID(a.requests[i])]
	work := containerrestart.Work{
		Request: r, Others: a.requests[first : first+1], Pod: a.pod, Now: a.now,
	}
	if first != i || over(r) {
		return work, nil
	}
	name, why := containerrestart.RuntimeOf(r, a.known())
	if why == nil {
		return a.inspect(ctx, work, name)
	}
	work.NoRuntime = why
	return work, nil
}

// inspect adds what the runtime of a name knows.
func (a *act) inspect(ctx context.Context, work containerrestart.Work, name string) (containerrestart.Work, error) {
	found, err := a.runtimes[name].Containers(ctx, cri.Query{PodUID: string(podUID(work.Request))})
	if err != nil {
		return work, err
	}
	work.Containers = containers.Of(name, found)
	if a.pod != nil || !asksPod(work.Request) || len(found) == 0 {
		return work, nil
	}
	sandbox, err := a.runtimes[name].Sandbox(ctx, found[0].SandboxID)
	if err == nil && len(sandbox.IPs) > 0 {
		work.PodIP = sandbox.IPs[0]
	}
	return work, err
}

// asksPod says whether a hook of a request asks the pod without naming a host.
func asksPod(r *request) bool {
	for i := range r.Spec.Containers {
		if hook := r.Spec.Containers[i].PreStop; hook != nil && hook.HTTPGet != nil && hook.HTTPGet.Host == "" {
			return true
		}
	}
	return false
}

// attempts are those in the pod of a request.
func (a *act) attempts(r *request) []containerrestart.Attempt {
	var all []containerrestart.Attempt
	for k, outcome := range a.workers.Known() {
		if k.pod == a.name && k.podUID == podUID(r) {
			all = append(all, containerrestart.Attempt{
				Request: k.uid, Container: k.container, Done: outcome.Done, Err: outcome.Err,
			})
		}
	}
	return all
}

// write patches the status of a request, and reports whether the API server accepted the patch. An outdated patch
// requeues the pod.
func (a *act) write(ctx context.Context, i int, w *write.Write) (bool, error) {
	body, err := w.Data()
	if err != nil {
		return false, err
	}
	raw := stored.Untyped(gvk())
	raw.SetNamespace(a.requests[i].Namespace)
	raw.SetName(a.requests[i].Name)
	err = a.api.Client.Status().Patch(ctx, raw, client.RawPatch(w.Type, body))
	switch {
	case write.IsOutdated(err):
		a.wake(soon)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write status of request %s: %w", a.requests[i].Name, err)
	}
	a.writes.Patched(a.name, raw)
	fresh := stored.Whole[request](raw)
	if fresh == nil {
		return false, nil // the next pass sees what it has become
	}
	a.requests[i] = fresh
	return true, nil
}

// begin has a container stopped.
func (a *act) begin(ctx context.Context, w containerrestart.Work, k containerrestart.Kill) {
	r := w.Request
	var spec *corev1.PodSpec
	if w.Pod != nil {
		spec = &w.Pod.Spec
	}
	name, _ := containerrestart.RuntimeOf(r, a.known())
	is := containerrestart.Pod{Namespace: a.name.Namespace, Name: a.name.Name, UID: podUID(r)}
	key := attempt{pod: a.name, podUID: podUID(r), request: r.Name, uid: r.UID, container: k.Container}
	a.workers.Begin(ctx, key, stopping.Order{
		Kill: k, Runtime: a.runtimes[name], Object: stopping.ContainerOf(is, spec, k.Container),
	})
}

// forget drops the attempts for a request: those that have ended, or all, which gives up the others.
func (a *act) forget(r *request, all bool) {
	for k, outcome := range a.workers.Known() {
		if k.uid == r.UID && (all || outcome.Done) {
			a.workers.Forget(k)
		}
	}
}
