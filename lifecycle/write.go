package lifecycle

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/write"
)

// Hold is Gate.Hold of the gate KruisePodReady.
func Hold(pod *corev1.Pod, userAgent, key string, now time.Time) (*write.Write, error) {
	return Gate{}.Hold(pod, userAgent, key, now)
}

// Release is Gate.Release of the gate KruisePodReady.
func Release(pod *corev1.Pod, userAgent, key string, now time.Time) (*write.Write, error) {
	return Gate{}.Release(pod, userAgent, key, now)
}

// TestCondition returns the tests that a condition of the pod still has its status and message; none where the pod
// lacks the condition. Use it together with SetConditions, which tests the rest.
func TestCondition(pod *corev1.Pod, t corev1.PodConditionType) []write.Op {
	i := indexOf(pod, t)
	if i < 0 {
		return nil
	}
	c, at := &pod.Status.Conditions[i], strconv.Itoa(i)
	var message any
	if c.Message != "" {
		message = c.Message
	}
	return []write.Op{
		write.Test(write.Pointer("status", "conditions", at, "status"), c.Status),
		write.Test(write.Pointer("status", "conditions", at, "message"), message),
	}
}

// SetConditions returns the operations that set conditions of the pod's status. They test that each condition still
// stands where the pod has it. Where the pod lacks a condition, they test the resource version: two writers must not
// both add the condition. They do not test the value of a condition; add a test where it was decided upon.
func SetConditions(pod *corev1.Pod, conditions ...corev1.PodCondition) []write.Op {
	var ops, added []write.Op
	empty := len(pod.Status.Conditions) == 0
	for i := range conditions {
		c := &conditions[i]
		if at := indexOf(pod, c.Type); at >= 0 {
			path := write.Pointer("status", "conditions", strconv.Itoa(at))
			ops = append(ops, write.Test(path+"/type", c.Type), write.Replace(path, c))
			continue
		}
		if len(added) == 0 && pod.ResourceVersion != "" {
			ops = append(ops, write.Test(write.Pointer("metadata", "resourceVersion"), pod.ResourceVersion))
		}
		if empty {
			added = append(added, write.Add(write.Pointer("status", "conditions"), []*corev1.PodCondition{c}))
			empty = false
			continue
		}
		added = append(added, write.Add(write.Pointer("status", "conditions", "-"), c))
	}
	return append(ops, added...)
}

func indexOf(pod *corev1.Pod, t corev1.PodConditionType) int {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return i
		}
	}
	return -1
}
