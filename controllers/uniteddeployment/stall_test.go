package uniteddeployment_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// stall sets the condition Stalled of the workload of a subset; an empty status removes it.
func (m *model) stall(u *v1beta1.UnitedDeployment, subset string, status corev1.ConditionStatus, reason string) {
	m.Helper()
	set := &v1beta1.CloneSet{}
	m.get(client.ObjectKeyFromObject(m.child(u, subset).Object), set)
	set.Status.Conditions = nil
	if status != "" {
		set.Status.Conditions = []v1beta1.CloneSetCondition{{
			Type: workloads.Stalled, Status: status, Reason: reason, Message: set.Name + "-0: it waits",
			LastTransitionTime: metav1.NewTime(m.Now()),
		}}
	}
	m.put(set)
}

func (m *model) stalled(u *v1beta1.UnitedDeployment) *v1beta1.UnitedDeploymentCondition {
	m.Helper()
	m.Look(u)
	of := func(c v1beta1.UnitedDeploymentCondition) bool { return c.Type == workloads.Stalled }
	i := slices.IndexFunc(u.Status.Conditions, of)
	if i < 0 {
		return nil
	}
	return &u.Status.Conditions[i]
}

// An object stands still with the workload of a subset.
func TestStalled(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 4, "a,b", of("CloneSet"))
	m.rest()
	m.stall(u, "b", corev1.ConditionUnknown, "UpdateLimited")
	m.rest()
	if c := m.stalled(u); c == nil || c.Status != corev1.ConditionUnknown || c.Reason != "UpdateLimited" {
		t.Errorf("a wait of a workload: %+v", c)
	}
	m.stall(u, "a", corev1.ConditionTrue, "ImagePullFailed")
	m.rest()
	c := m.stalled(u)
	want := "a: " + m.child(u, "a").Object.GetName() + "-0: it waits"
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason != "ImagePullFailed" || c.Message != want {
		t.Errorf("condition %+v, want %q", c, want)
	}
	m.Server.Requests()
	m.pass(10 * workloads.StalledAfter)
	if requests := m.Server.Requests(); len(requests) > 0 {
		t.Errorf("requests while nothing changes: %v", requests)
	}
	for _, subset := range []string{"a", "b"} {
		m.stall(u, subset, "", "")
	}
	m.pass(2 * workloads.StalledAfter)
	if c := m.stalled(u); c != nil {
		t.Errorf("taken back: %+v", c)
	}
}
