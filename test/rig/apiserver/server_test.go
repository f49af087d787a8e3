package apiserver_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/test/rig/patches"
)

func newPod(t *testing.T, change func(*corev1.Pod)) (*apiserver.Server, *corev1.Pod) {
	t.Helper()
	s := apiserver.New(scheme.Scheme, func() time.Time { return time.Unix(1_800_000_000, 0) })
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	if change != nil {
		change(pod)
	}
	if err := s.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return s, pod
}

// A patch is applied, or fails, as on an API server.
func TestPatch(t *testing.T) {
	dropped := func(err error) bool {
		var d *patches.DroppedError
		return errors.As(err, &d)
	}
	fine := func(err error) bool { return err == nil }
	for name, c := range map[string]struct {
		why         string
		subresource string
		kind        types.PatchType
		patch       string
		want        func(error) bool
		changed     bool
	}{
		"a label": {"it may change", "", types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`, fine, true},
		"nothing": {
			why: "it makes no version", kind: types.MergePatchType, patch: `{"metadata":{"labels":{"app":"web"}}}`, want: fine,
		},
		"a test that holds": {
			why: "the rest is applied", kind: types.JSONPatchType,
			patch: `[{"op":"test","path":"/metadata/labels/app","value":"web"},{"op":"replace","path":"/metadata/labels/app","value":"x"}]`,
			want:  fine, changed: true,
		},
		"a test that fails": {
			why:   "nothing is applied",
			kind:  types.JSONPatchType,
			patch: `[{"op":"test","path":"/metadata/labels/app","value":"x"},{"op":"replace","path":"/metadata/labels/app","value":"y"}]`,
			want:  func(err error) bool { return apierrors.ReasonForError(err) != "" && err != nil },
		},
		"another UID": {
			why:   "the name belongs to another pod",
			kind:  types.MergePatchType,
			patch: `{"metadata":{"uid":"x","labels":{"a":"b"}}}`,
			want:  apierrors.IsConflict,
		},
		"an old version": {
			why:   "another writer was faster",
			kind:  types.MergePatchType,
			patch: `{"metadata":{"resourceVersion":"0","labels":{"a":"b"}}}`,
			want:  apierrors.IsConflict,
		},
		"status of the pod": {
			why: "it has its own subresource", kind: types.MergePatchType, patch: `{"status":{"phase":"Failed"}}`, want: dropped,
		},
		"labels by status": {
			why:         "API servers take them with a status",
			subresource: "status",
			kind:        types.MergePatchType,
			patch:       `{"metadata":{"labels":{"a":"b"}}}`,
			want:        fine,
			changed:     true,
		},
		"a spec by status": {
			why:         "the subresource has no spec",
			subresource: "status",
			kind:        types.MergePatchType,
			patch:       `{"spec":{"nodeName":"node-9"}}`,
			want:        dropped,
		},
		"status by status": {"it is applied", "status", types.MergePatchType, `{"status":{"phase":"Failed"}}`, fine, true},
		"environment": {
			why:   "a running pod keeps it",
			kind:  types.StrategicMergePatchType,
			patch: `{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"b"}]}]}}`,
			want:  dropped,
		},
		"resources by resize": {
			why:         "it is applied",
			subresource: "resize",
			kind:        types.StrategicMergePatchType,
			patch:       `{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"1"}}}]}}`,
			want:        fine,
			changed:     true,
		},
		"not JSON": {"it is rejected", "", types.JSONPatchType, `{`, apierrors.IsBadRequest, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, pod := newPod(t, nil)
			before := s.Version()
			var err error
			if c.subresource == "" {
				err = s.Patch(t.Context(), pod, client.RawPatch(c.kind, []byte(c.patch)))
			} else {
				err = s.SubResource(c.subresource).Patch(t.Context(), pod, client.RawPatch(c.kind, []byte(c.patch)))
			}
			if !c.want(err) {
				t.Errorf("%s: %v", c.why, err)
			}
			if (s.Version() != before) != c.changed {
				t.Errorf("%s: version %d became %d", c.why, before, s.Version())
			}
		})
	}
}

// A deleted object is stored until its finalizers are removed and, for a pod on a node, until the node has ended it.
func TestDelete(t *testing.T) {
	for name, c := range map[string]struct {
		why       string
		change    func(*corev1.Pod)
		options   []client.DeleteOption
		stored    bool
		afterStep bool
	}{
		"on no node": {"nothing is to be ended", nil, nil, false, false},
		"on a node":  {"the node ends the pod", func(p *corev1.Pod) { p.Spec.NodeName = "n" }, nil, true, false},
		"without grace period": {
			why:     "the node is not asked",
			change:  func(p *corev1.Pod) { p.Spec.NodeName = "n" },
			options: []client.DeleteOption{client.GracePeriodSeconds(0)},
		},
		"with a finalizer": {
			why:       "its owner has not removed it",
			change:    func(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} },
			stored:    true,
			afterStep: true,
		},
		"another UID": {
			why:       "the name belongs to another pod",
			options:   []client.DeleteOption{client.Preconditions{UID: ptr.To(types.UID("x"))}},
			stored:    true,
			afterStep: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, pod := newPod(t, c.change)
			_ = s.Delete(t.Context(), pod, c.options...)
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); (err == nil) != c.stored {
				t.Errorf("%s: %v", c.why, err)
			}
			s.ChangePods(func(pod *corev1.Pod) *corev1.Pod {
				if pod.DeletionTimestamp != nil {
					return nil // its node has ended it
				}
				return pod
			})
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); (err == nil) != c.afterStep {
				t.Errorf("%s, after a step: %v", c.why, err)
			}
		})
	}
}

// A name is taken once, and a reader of metadata gets no more than that.
func TestCreateAndRead(t *testing.T) {
	s, pod := newPod(t, nil)
	again := pod.DeepCopy()
	again.ResourceVersion = ""
	if err := s.Create(t.Context(), again); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second pod of the name: %v", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := s.List(t.Context(), list, client.MatchingLabels{"app": "web"}); err != nil || len(list.Items) != 1 ||
		list.Items[0].UID != pod.UID {
		t.Errorf("metadata: %v, %v", list.Items, err)
	}
	if err := s.List(t.Context(), &corev1.PodList{}, client.MatchingFields{"spec.nodeName": ""}); err == nil {
		t.Error("a field without an index selects pods")
	}
}
