//go:build envtest

package containerrecreaterequest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/internal/stored"
)

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ContainerRecreateRequest") }

func podUID(r *request) types.UID {
	return types.UID(r.Labels[v1beta1.ContainerRecreateRequestPodUIDKey])
}

// podName is what a request says, if it says a name.
func podName(o client.Object) string {
	if raw, is := o.(*unstructured.Unstructured); is {
		name, _, _ := unstructured.NestedString(raw.Object, "spec", "podName")
		return name
	}
	return ""
}

// work is a pass of the daemon over the requests of a pod. It reports whether any is active.
func (n *node) work(ctx context.Context, name string, pod *corev1.Pod) (active bool, err error) {
	if !n.serving {
		return false, nil
	}
	all, err := n.requests(ctx)
	if err != nil {
		return false, err
	}
	gone := func(uid types.UID) bool {
		return !slices.ContainsFunc(all, func(r *request) bool { return r.UID == uid })
	}
	n.underWay = slices.DeleteFunc(n.underWay, func(s stopping) bool { return gone(s.request.UID) })
	n.attempts = slices.DeleteFunc(n.attempts, func(a containerrestart.Attempt) bool { return gone(a.Request) })
	all = slices.DeleteFunc(all, func(r *request) bool { return r.Spec.PodName != name })
	for _, r := range all {
		begun := slices.ContainsFunc(n.attempts, func(a containerrestart.Attempt) bool { return a.Request == r.UID })
		if r.Labels[activeKey] != "true" && !begun {
			continue
		}
		active = active || r.Labels[activeKey] == "true"
		w := containerrestart.Work{Request: r, Others: all, Attempts: slices.Clone(n.attempts), Now: time.Now()}
		if pod != nil && pod.UID == podUID(r) {
			w.Pod, w.Containers = pod, slices.Clone(n.running[pod.UID])
		}
		if err := n.do(ctx, r, containerrestart.Next(w)); err != nil {
			return false, err
		}
	}
	return active, nil
}

// requests are those of the node, in the order of their names.
func (n *node) requests(ctx context.Context) ([]*request, error) {
	raw := &unstructured.UnstructuredList{}
	raw.SetGroupVersionKind(gvk().GroupVersion().WithKind(gvk().Kind + "List"))
	err := n.client.List(ctx, raw, client.InNamespace(n.namespace),
		client.MatchingLabels{v1beta1.ContainerRecreateRequestNodeNameKey: nodeName}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var all []*request
	for i := range raw.Items {
		if r, malformed, err := stored.Decode[request](&raw.Items[i]); err == nil && malformed == nil {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *request) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// do does what comes next for a request. What it writes may come too late; then it will see so.
func (n *node) do(ctx context.Context, r *request, action containerrestart.Action) error {
	switch action.Verdict {
	case containerrestart.DoWrite:
		body, err := action.Write.Data()
		if err != nil {
			return err
		}
		raw := stored.Untyped(gvk())
		raw.SetNamespace(r.Namespace)
		raw.SetName(r.Name)
		if err := n.client.Status().Patch(ctx, raw,
			client.RawPatch(types.MergePatchType, body)); !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	case containerrestart.DoKill:
		k := *action.Kill
		n.attempts = append(n.attempts, containerrestart.Attempt{Request: r.UID, Container: k.Container})
		n.underWay = append(n.underWay, stopping{r, k})
	case containerrestart.DoCancel:
		n.underWay = slices.DeleteFunc(n.underWay, func(s stopping) bool { return s.request.UID == r.UID })
		n.done(r.UID, "", errors.New("canceled"))
	case containerrestart.DoWait, containerrestart.DoNothing:
	}
	return nil
}
