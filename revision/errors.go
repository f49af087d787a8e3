package revision

import "errors"

var errNoTemplate = errors.New("spec.template is missing")

// DataError says that the data of a ControllerRevision holds no template that can be read.
type DataError struct {
	// Name of the revision, empty when only its data was at hand.
	Name string
	// Err is what is wrong with it.
	Err error
}

// Error names the revision and what is wrong.
func (e *DataError) Error() string {
	if e.Name == "" {
		return "read revision data: " + e.Err.Error()
	}
	return "read revision " + e.Name + ": " + e.Err.Error()
}

// Unwrap gives what is wrong.
func (e *DataError) Unwrap() error { return e.Err }
