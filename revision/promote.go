package revision

// Progress is how far a rollout is, as counted from the instances of a workload: its pods, or its groups of pods.
type Progress struct {
	// Current and Update are the names of the revisions in the status. Current is empty before the first pass.
	Current, Update string
	// Replicas is how many instances the workload wants.
	Replicas int32
	// Existing is how many instances there are, those being deleted left out.
	Existing int32
	// Updated is how many of the existing instances have the update revision.
	Updated int32
}

// Promote returns the current revision after a pass, and reports whether it is another one than before: the update
// revision becomes the current one when there are as many instances as wanted, and all of them have it. Until then,
// instances that the partition keeps are created at the current revision, and a raised partition takes others back to
// it.
//
// Availability does not count: an instance that has the update revision is not created again at an older one.
func Promote(p Progress) (current string, promoted bool) {
	complete := p.Existing == p.Replicas && p.Updated == p.Existing
	if p.Current == p.Update || p.Current != "" && !complete {
		return p.Current, false
	}
	return p.Update, true
}
