package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

const (
	syncKey    = v1alpha1.ContainerRecreateRequestSyncContainerStatusesKey
	unreadyKey = v1alpha1.ContainerRecreateRequestUnreadyAcquiredKey
	syncText   = `[{"name":"main","ready":true,"restartCount":1,"containerID":"containerd://1"}]`
	unready    = "2026-11-21T03:00:50Z"
)

func TestContainerRecreateRequestConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.ContainerRecreateRequest, v1beta1.ContainerRecreateRequest](t, roundtriptest.Losses{
		Old: []string{
			"/metadata/annotations/crr.apps.kruise.io~1*", // malformed, or written in another way
		},
		Hub: []string{
			"/status/conditions",                          // others than a True PreRecreateGrace
			"/status/conditions/*/*",                      // another reason, message or observedGeneration
			"/metadata/annotations/crr.apps.kruise.io~1*", // beside a status that says otherwise
		},
	},
		func(x *metav1.ObjectMeta, c randfill.Continue) {
			x.Name = c.String(5)
			x.Annotations = map[string]string{
				"other":    c.String(5),
				syncKey:    pick(c, syncText, "["+syncText, `[]`, `null`, ` [ {"name": "a", "more": 1} ]`, ``),
				unreadyKey: pick(c, unready, "2026-11-21T11:00:50+08:00", "2026-11-21T03:00:50.123Z", "soon", ""),
			}
		},
		func(x *metav1.Condition, c randfill.Continue) {
			c.FillNoCustom(x)
			x.Type = pick(c, v1beta1.ContainerRecreateRequestPreRecreateGrace,
				v1beta1.ContainerRecreateRequestPreRecreateGrace, "Other")
			x.Status = pick(c, metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse)
			x.Reason = pick(c, v1beta1.ContainerRecreateRequestPreRecreateGraceReason, "Other")
			x.Message = pick(c, v1beta1.ContainerRecreateRequestPreRecreateGraceMessage, "")
		},
	)
}

func TestContainerRecreateRequestConvertTo(t *testing.T) {
	since, err := time.Parse(time.RFC3339, unready)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := []v1beta1.ContainerRecreateRequestSyncContainerStatus{
		{Name: "main", Ready: true, RestartCount: 1, ContainerID: "containerd://1"},
	}
	grace := []metav1.Condition{{
		Type: "PreRecreateGrace", Status: "True", Reason: "PreRecreateGrace", LastTransitionTime: metav1.NewTime(since),
		Message: "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
	}}
	for name, test := range map[string]struct {
		annotations, left map[string]string
		snapshot          []v1beta1.ContainerRecreateRequestSyncContainerStatus
		conditions        []metav1.Condition
	}{
		"annotations become status": {
			annotations: map[string]string{syncKey: syncText, unreadyKey: unready},
			snapshot:    snapshot, conditions: grace,
		},
		"other annotations stay": {
			annotations: map[string]string{syncKey: syncText, "other": "x"},
			left:        map[string]string{"other": "x"},
			snapshot:    snapshot,
		},
		"a malformed one does not hide the other": {
			annotations: map[string]string{syncKey: syncText, unreadyKey: "soon"},
			snapshot:    snapshot,
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, hub := v1alpha1.ContainerRecreateRequest{}, v1beta1.ContainerRecreateRequest{}
			old.Annotations = test.annotations
			if err := old.ConvertTo(&hub); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.snapshot, hub.Status.ContainerStatusSnapshot); diff != "" {
				t.Errorf("containerStatusSnapshot (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.conditions, hub.Status.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, key := range []string{syncKey, unreadyKey, "other"} {
				if hub.Annotations[key] != test.left[key] {
					t.Errorf("annotation %s is %q, want %q", key, hub.Annotations[key], test.left[key])
				}
			}
		})
	}
}

func TestContainerRecreateRequestEditsBetween(t *testing.T) {
	old, hub := v1alpha1.ContainerRecreateRequest{}, v1beta1.ContainerRecreateRequest{}
	old.Annotations = map[string]string{syncKey: "[" + syncText, unreadyKey: unready}
	if err := old.ConvertTo(&hub); err != nil {
		t.Fatal(err)
	}
	hub.Status.Conditions[0].Status = metav1.ConditionFalse
	back := v1alpha1.ContainerRecreateRequest{}
	if err := back.ConvertFrom(&hub); err != nil {
		t.Fatal(err)
	}
	if got, ok := back.Annotations[unreadyKey]; ok {
		t.Errorf("the pod is ready again, but the annotation says %q", got)
	}
	if got := back.Annotations[syncKey]; got != "["+syncText {
		t.Errorf("a malformed annotation became %q", got)
	}

	hub.Status.ContainerStatusSnapshot = []v1beta1.ContainerRecreateRequestSyncContainerStatus{
		{Name: "main", Ready: true, RestartCount: 1, ContainerID: "containerd://1"},
	}
	back = v1alpha1.ContainerRecreateRequest{}
	if err := back.ConvertFrom(&hub); err != nil {
		t.Fatal(err)
	}
	if got := back.Annotations[syncKey]; got != syncText {
		t.Errorf("a malformed annotation hides the snapshot: %q", got)
	}
}
