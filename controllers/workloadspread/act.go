package workloadspread

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// noteNotPatched is the event of a pod whose deletion cost cannot be written.
const noteNotPatched = "PatchPodDeletionCostFailed"

// patch writes to pods. A pod whose write fails keeps no other pod from its own.
func (r *Reconciler) patch(ctx context.Context, s *snapshot, patches []*write.Write) error {
	_, err := batches.Each(patches, func(w *write.Write) error {
		answer, err := runtimeclient.Send(ctx, r.api.Client, w)
		switch {
		case write.IsOutdated(err):
			return nil // the event of the change brings the next pass
		case err != nil:
			r.api.Warningf(s.spread, noteNotPatched, "Failed to patch pod %s: %v", w.Object.GetName(), err)
			return fmt.Errorf("patch pod %s: %w", w.Object.GetName(), err)
		}
		if pod, is := answer.(*corev1.Pod); is {
			r.pods.Patched(s.key(), pod)
		}
		return nil
	})
	return err
}

// release removes from pods what was written for a WorkloadSpread that is gone.
func (r *Reconciler) release(ctx context.Context, name types.NamespacedName) error {
	r.spreads.Writes.Forget(name)
	r.pods.Forget(name)
	r.index.Delete(name)
	for _, code := range reported() {
		r.emitted.Forget(about{name, code})
	}
	var list corev1.PodList
	if err := r.api.Client.List(ctx, &list, client.InNamespace(name.Namespace), client.MatchingFields{matchField: name.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	var patches []*write.Write
	for i := range list.Items {
		if pod := &list.Items[i]; subset.Active(pod) {
			patches = append(patches, unmark(pod))
		}
	}
	_, err := batches.Each(patches, func(w *write.Write) error {
		if _, err := runtimeclient.Send(ctx, r.api.Client, w); err != nil && !write.IsOutdated(err) {
			return fmt.Errorf("patch pod %s: %w", w.Object.GetName(), err)
		}
		return nil
	})
	return err
}

// about is one reason of one WorkloadSpread.
type about struct {
	spread types.NamespacedName
	code   string
}

// reported are the codes of notes on a state, whose event is emitted once until the reason is gone.
func reported() []string {
	return []string{noteInvalid, noteBadPatch, noteBadPath, subset.NoteUnreadable, subset.NoteUnknownReplicas, subset.NoteTooManyVersions}
}

// emit emits the events of a pass, after its writes.
func (r *Reconciler) emit(s *snapshot, p *pass) {
	texts := map[string]string{}
	for _, n := range p.notes {
		switch n.Code {
		case subset.NoteNotCreated, subset.NoteNotDeleted:
			r.api.Event(s.spread, corev1.EventTypeWarning, n.Code, n.Text)
		case subset.NoteRecovered:
			r.api.Event(s.spread, corev1.EventTypeNormal, n.Code, n.Text)
		default:
			if n.Level == note.Blocked && texts[n.Code] == "" {
				texts[n.Code] = n.Text
			}
		}
	}
	for _, code := range reported() {
		if r.emitted.Changed(about{s.key(), code}, texts[code]) {
			r.api.Event(s.spread, corev1.EventTypeWarning, code, texts[code])
		}
	}
}
