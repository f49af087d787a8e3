package driver

import "k8s.io/apimachinery/pkg/runtime"

// EventRecorder emits events. The recorder of a controller-runtime manager and record.EventRecorder of client-go are
// EventRecorders.
type EventRecorder interface {
	Event(object runtime.Object, eventType, reason, message string)
}
