package nodeimage

import "k8s.io/apimachinery/pkg/runtime"

// Reasons of events.
const (
	// reasonPullFailed is what a daemon says of a pull that failed, too.
	reasonPullFailed = "PullImageFailed"
	// reasonInvalidSpec is not among the reference's, which stops working.
	reasonInvalidSpec = "InvalidSpec"
)

// tell records an event of an object, or of what a reference is to. It comes after the write that it is about.
func (r *Reconciler) tell(object runtime.Object, eventType, reason, text string) {
	if r.options.Recorder != nil {
		r.options.Recorder.Event(object, eventType, reason, text)
	}
}
