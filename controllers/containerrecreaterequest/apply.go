package containerrecreaterequest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/note"
)

// act carries out one plan. It is the only part that writes.
type act struct {
	*Reconciler
	*snapshot

	plan containerrestart.Plan
}

// The subresources that are written.
const (
	main   = ""
	status = "status"
)

// carryOut makes the writes of the plan in their order. An error leaves the rest to the next plan.
func (a *act) carryOut(ctx context.Context) error {
	if err := a.addFinalizer(ctx); err != nil {
		return err
	}
	if err := a.writePod(ctx); err != nil {
		return err
	}
	if err := a.writeStatus(ctx); err != nil {
		return err
	}
	if err := a.tidy(ctx); err != nil {
		return err
	}
	return a.remove(ctx)
}

func (a *act) addFinalizer(ctx context.Context) error {
	if !a.plan.AddFinalizer {
		return nil
	}
	all := append(slices.Clone(a.request.Finalizers), v1beta1.ContainerRecreateRequestUnreadyAcquiredKey)
	return a.patch(ctx, main, map[string]any{"metadata": a.metadata(map[string]any{"finalizers": all})})
}

// writePod takes the pod out of traffic or puts it back.
func (a *act) writePod(ctx context.Context) error {
	w := a.plan.Pod
	if w == nil {
		return nil
	}
	data, err := w.Data()
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.pod.Namespace, Name: a.pod.Name}}
	if err := a.api.Client.SubResource(w.Subresource).Patch(ctx, pod, client.RawPatch(w.Type, data)); err != nil {
		return fmt.Errorf("write conditions of pod %s: %w", pod.Name, err)
	}
	return nil
}

func (a *act) writeStatus(ctx context.Context) error {
	if a.plan.Write == nil {
		return nil
	}
	patch, err := a.plan.Write.Data()
	if err != nil {
		return err
	}
	return a.send(ctx, status, patch)
}

// tidy takes off what a request no longer needs, in one write.
func (a *act) tidy(ctx context.Context) error {
	metadata := map[string]any{"uid": a.request.UID}
	if a.plan.RemoveFinalizer {
		rest := slices.DeleteFunc(slices.Clone(a.request.Finalizers), func(f string) bool {
			return f == v1beta1.ContainerRecreateRequestUnreadyAcquiredKey
		})
		metadata = a.metadata(map[string]any{"finalizers": rest})
	}
	if a.plan.RemoveActive {
		// Where the label alone goes, no version is needed: what has ended does not begin again.
		metadata["labels"] = map[string]any{v1beta1.ContainerRecreateRequestActiveKey: nil}
	}
	if !a.plan.RemoveFinalizer && !a.plan.RemoveActive {
		return nil
	}
	return a.patch(ctx, main, map[string]any{"metadata": metadata})
}

func (a *act) remove(ctx context.Context) error {
	if !a.plan.Delete {
		return nil
	}
	raw := a.untyped()
	if err := a.api.Client.Delete(ctx, raw, client.Preconditions{UID: &a.request.UID}); err != nil {
		return fmt.Errorf("delete request: %w", err)
	}
	a.requests.Writes.Deleted(a.key(), raw)
	return nil
}

// refuse ends a request that cannot be read, and drops what was known of it: that may be what cannot be read.
func (a *act) refuse(ctx context.Context) error {
	a.plan = containerrestart.Plan{Notes: []note.Note{{
		Code: containerrestart.NoteEnded, Object: a.request.Name, Text: "cannot be read: " + a.malformed.Error(),
	}}}
	return a.patch(ctx, status, map[string]any{"metadata": a.metadata(nil), "status": map[string]any{
		"phase":          v1beta1.ContainerRecreateRequestCompleted,
		"completionTime": metav1.NewTime(a.now),
		"message":        a.plan.Notes[0].Text,

		"containerRecreateStates": nil,
		"containerStatusSnapshot": nil,
		"conditions":              nil,
	}})
}

// metadata is that of a patch which fails when the request has changed.
func (a *act) metadata(more map[string]any) map[string]any {
	m := map[string]any{"uid": a.request.UID, "resourceVersion": a.request.ResourceVersion}
	maps.Copy(m, more)
	return m
}

func (a *act) patch(ctx context.Context, subresource string, body map[string]any) error {
	patch, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return a.send(ctx, subresource, patch)
}

// send writes, and goes on with what the API server answered.
func (a *act) send(ctx context.Context, subresource string, body []byte) error {
	raw, patch := a.untyped(), client.RawPatch(types.MergePatchType, body)
	var err error
	if subresource == main {
		err = a.api.Client.Patch(ctx, raw, patch)
	} else {
		err = a.api.Client.SubResource(subresource).Patch(ctx, raw, patch)
	}
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	a.requests.Writes.Patched(a.key(), raw)
	fresh, _, err := decode(raw)
	if err != nil {
		return err
	}
	a.request = fresh
	return nil
}

// untyped returns the request for a write. The client leaves the answer undecoded, because it may not fit the type.
func (a *act) untyped() *unstructured.Unstructured {
	raw := a.requests.Named(a.key())
	raw.SetUID(a.request.UID)
	return raw
}
