// Package screen prints rollouts as lines, and what they cost as a table.
package screen

import "time"

// Frame is all that is shown at one moment.
type Frame struct {
	// Step of Steps, and what it is about.
	Step, Steps int
	Title       string
	// Elapsed since the step began.
	Elapsed   time.Duration
	Workloads []Workload
}

// Workload is how far one has come.
type Workload struct {
	// Name is its kind and its name.
	Name string
	// Replicas is the number of pods that it is to have.
	Replicas int
	// Updated are its pods of the newest revision, and Kept those that have been there since the step began.
	Updated, Kept int
	// Revisions of its pods, the oldest first.
	Revisions []Revision
	// Notes say what it waits for, and why.
	Notes []Note
	// Idle says that the step asks nothing of it.
	Idle bool
	// Took is how long it needed for the step; zero as long as it is under way.
	Took time.Duration
}

// Revision is what there is of one.
type Revision struct {
	Name string
	// Ready pods serve, Starting ones do not yet or not at the moment, and Leaving ones are about to go.
	Ready, Starting, Leaving int
}

// Note is one reason.
type Note struct {
	// Code is the reason in one word.
	Code string
	Text string
}
