package nodeimage

// Reasons of events.
const (
	// reasonPullFailed is what a daemon says of a pull that failed, too.
	reasonPullFailed = "PullImageFailed"
	// reasonInvalidSpec is not among the reference's, which stops working.
	reasonInvalidSpec = "InvalidSpec"
)
