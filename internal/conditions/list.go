package conditions

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is a condition of a workload. A kind whose conditions have no LastUpdateTime leaves it out.
type Condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	LastUpdateTime     metav1.Time            `json:"lastUpdateTime"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
}

// List are the conditions of one object, at most one of each type.
type List []Condition

// Find returns a condition by its type; nil for none.
func (l List) Find(conditionType string) *Condition {
	for i := range l {
		if l[i].Type == conditionType {
			return &l[i]
		}
	}
	return nil
}

// Remove removes a condition.
func (l *List) Remove(conditionType string) {
	*l = slices.DeleteFunc(*l, func(c Condition) bool { return c.Type == conditionType })
}

// Set sets a condition. One with the same status and reason stays as it is.
func (l *List) Set(c Condition, now time.Time) {
	old := l.Find(c.Type)
	if old != nil && old.Status == c.Status && old.Reason == c.Reason {
		return
	}
	c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	l.Remove(c.Type)
	*l = append(*l, c)
}

// SetError sets a condition of failure to True with the text of an error, and removes it without an error.
func (l *List) SetError(conditionType string, err error, now time.Time) {
	if err == nil {
		l.Remove(conditionType)
		return
	}
	since := metav1.NewTime(now)
	if old := l.Find(conditionType); old != nil {
		if old.Message == err.Error() {
			return
		}
		since = old.LastTransitionTime
	}
	l.Remove(conditionType)
	*l = append(*l, Condition{
		Type: conditionType, Status: corev1.ConditionTrue, LastTransitionTime: since, Message: err.Error(),
	})
}

// Verdict is a condition about one sort of write, which is kept once it exists.
type Verdict struct {
	Type string
	// Failed and Succeeded are the reasons of True and False.
	Failed, Succeeded string
	// Prefix is what the message begins with.
	Prefix string
}

// Judge sets a condition to True with an error. Without one a condition that exists becomes False, and none is added.
func (l *List) Judge(v Verdict, err error, now time.Time) {
	old := l.Find(v.Type)
	if err == nil {
		if old != nil {
			l.Set(Condition{Type: v.Type, Status: corev1.ConditionFalse, Reason: v.Succeeded}, now)
		}
		return
	}
	if old != nil && old.Status != corev1.ConditionTrue {
		l.Remove(v.Type) // the transition is now
	}
	l.SetError(v.Type, fmt.Errorf("%s%w", v.Prefix, err), now)
	l.Find(v.Type).Reason = v.Failed
}
