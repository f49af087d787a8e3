package imagepulljob

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// report writes the status, if it changed.
func (p *pass) report(ctx context.Context, plan imagepull.JobPlan) error {
	status := plan.Status
	if n := len(p.refused); n > 0 && status.CompletionTime == nil {
		status.Message += fmt.Sprintf(", NodeImages that take no change: %d", n)
	}
	if p.unplaced != nil && status.CompletionTime == nil {
		status.Message += fmt.Sprintf(", pull secrets cannot be copied to namespace %s", p.options.SecretNamespace)
	}
	return p.writeStatus(ctx, status)
}

// refuse says in the status and in an event why the job cannot run.
func (p *pass) refuse(ctx context.Context) error {
	status := *p.job.Status.DeepCopy()
	status.Message = "job cannot run: " + p.unfit.Error()
	if status.Message == p.job.Status.Message {
		return nil
	}
	if err := p.writeStatus(ctx, status); err != nil {
		return err
	}
	p.event(corev1.EventTypeWarning, reasonInvalidSpec, p.unfit.Error())
	return nil
}

func (p *pass) writeStatus(ctx context.Context, status v1beta1.ImagePullJobStatus) error {
	if apiequality.Semantic.DeepEqual(status, p.job.Status) {
		return nil
	}
	before, err := fields(p.job.Status)
	if err != nil {
		return err
	}
	after, err := fields(status)
	if err != nil {
		return err
	}
	for name := range before {
		if _, stays := after[name]; !stays {
			after[name] = nil
		}
	}
	err = p.patch(ctx, p.client.Status().Patch, map[string]any{"metadata": map[string]any{"uid": p.job.UID}, "status": after})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	p.job.Status = status
	return nil
}

func fields(status v1beta1.ImagePullJobStatus) (map[string]any, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	var all map[string]any
	return all, json.Unmarshal(data, &all)
}

// isHeld says whether the job has the finalizer.
func (p *pass) isHeld() bool {
	return slices.Contains(p.job.Finalizers, v1beta1.ImagePullJobFinalizerKey)
}

// hold adds the finalizer. Only a job that has secrets copied needs one.
func (p *pass) hold(ctx context.Context) error {
	return p.finalizers(ctx, append(slices.Clone(p.job.Finalizers), v1beta1.ImagePullJobFinalizerKey))
}

// finalizers writes all of them, unless somebody else has done so.
func (p *pass) finalizers(ctx context.Context, all []string) error {
	metadata := map[string]any{"uid": p.job.UID, "resourceVersion": p.job.ResourceVersion, "finalizers": all}
	write := func(ctx context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
		return p.client.Patch(ctx, o, patch)
	}
	if err := p.patch(ctx, write, map[string]any{"metadata": metadata}); err != nil {
		return fmt.Errorf("write finalizers: %w", err)
	}
	p.job.Finalizers = all
	return nil
}

type patchFunc func(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error

// patch writes to the job as an untyped object: nobody decodes the answer, which may be what no job can be.
func (p *pass) patch(ctx context.Context, write patchFunc, content map[string]any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	fresh := p.untyped()
	if err := write(ctx, fresh, client.RawPatch(types.MergePatchType, data)); err != nil {
		return err
	}
	p.jobWrites.Patched(p.key(), fresh)
	p.job.ResourceVersion = fresh.GetResourceVersion()
	return nil
}

func (p *pass) untyped() *unstructured.Unstructured {
	object := stored.Untyped(gvk())
	object.SetNamespace(p.job.Namespace)
	object.SetName(p.job.Name)
	return object
}

// end releases what a job holds that has ended, and deletes it when its time has come.
func (p *pass) end(ctx context.Context) (ctrl.Result, error) {
	if err := p.release(ctx, p.job); err != nil {
		return ctrl.Result{}, err
	}
	if p.options.WatchSecrets { // the poll forgets by itself
		for _, name := range p.job.Spec.PullSecrets {
			p.sources.forget(types.NamespacedName{Namespace: p.job.Namespace, Name: name})
		}
	}
	if p.isHeld() {
		rest := slices.DeleteFunc(slices.Clone(p.job.Finalizers), func(f string) bool { return f == v1beta1.ImagePullJobFinalizerKey })
		if err := p.finalizers(ctx, rest); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	if p.job.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	plan, err := p.review()
	if err != nil {
		return ctrl.Result{}, err
	}
	if !plan.Delete {
		return ctrl.Result{RequeueAfter: max(plan.RequeueAfter, 0)}, nil
	}
	gone := p.untyped()
	gone.SetUID(p.job.UID)
	if err := p.client.Delete(ctx, gone, client.Preconditions{UID: &p.job.UID}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("delete finished job: %w", err)
	}
	p.jobWrites.Deleted(p.key(), gone)
	return ctrl.Result{}, nil
}
