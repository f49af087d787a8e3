package native

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/workload/native"
	"github.com/kruisekit/kruisekit/write"
)

// ConditionRolledOut is the condition of a Deployment that is rolled out in place: True for StateComplete. Its reason
// is the State. The built-in controller keeps conditions of other types than its own.
const ConditionRolledOut appsv1.DeploymentConditionType = "kruisekit.dev/RolledOut"

// textHeld is what a user must know who wants to go back while the Deployment is held.
const textHeld = "kubectl rollout undo refuses a paused Deployment: go back by kubectl set image, apply or " +
	"kubectl kruise rollout undo"

// condition returns the write of the condition of a Deployment; nil where it stays the same.
func (s *snapshot) condition(progress *Progress) (*write.Write, error) {
	d, ok := s.set.(*appsv1.Deployment)
	if !ok {
		return nil, nil
	}
	var wanted map[string]any
	switch before := rolledOut(d); {
	case progress == nil && before == nil:
		return nil, nil
	case progress == nil:
		wanted = map[string]any{"$patch": "delete", "type": ConditionRolledOut}
	default:
		after := s.conditionOf(progress)
		if before != nil && before.Status == after.Status && before.Reason == after.Reason &&
			cause(before.Message) == cause(after.Message) {
			return nil, nil
		}
		wanted = map[string]any{
			"type": after.Type, "status": after.Status, "reason": after.Reason, "message": after.Message,
			"lastUpdateTime": after.LastUpdateTime, "lastTransitionTime": after.LastTransitionTime,
		}
		if before != nil && before.Status == after.Status {
			delete(wanted, "lastTransitionTime")
		}
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": d.UID}, "status": map[string]any{"conditions": []any{wanted}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode condition: %w", err)
	}
	return &write.Write{
		Verb: write.Patch, Object: d, Subresource: write.Status, Type: types.StrategicMergePatchType, Body: write.Bytes(data),
	}, nil
}

// isHeld reports whether a Deployment is held.
func (s *snapshot) isHeld() bool {
	d, ok := s.set.(*appsv1.Deployment)
	_, has := s.set.GetAnnotations()[native.HoldKey]
	return ok && has && d.Spec.Paused
}

// conditionOf returns the condition that reports a progress.
func (s *snapshot) conditionOf(progress *Progress) appsv1.DeploymentCondition {
	now := metav1.NewTime(s.now)
	c := appsv1.DeploymentCondition{
		Type: ConditionRolledOut, Status: corev1.ConditionFalse, Reason: string(progress.State), Message: progress.Note,
		LastUpdateTime: now, LastTransitionTime: now,
	}
	switch held := s.isHeld(); {
	case progress.State == StateComplete:
		c.Status, c.Message = corev1.ConditionTrue, "all pods run the template and are ready"
	case progress.State == StateProgressing && held:
		c.Message = textHeld
	case progress.State == StateProgressing: // the note changes with each pod
		c.Message = "the rollout goes on"
	case held:
		c.Message += ". " + textHeld
	}
	return c
}

// cause is the code of a message, and the object that it is about.
func cause(message string) string {
	code, _, _ := strings.Cut(message, ":")
	return code
}

func rolledOut(d *appsv1.Deployment) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if c := &d.Status.Conditions[i]; c.Type == ConditionRolledOut {
			return c
		}
	}
	return nil
}
