package revision

import "errors"

var (
	errNoTemplate = errors.New("spec.template is missing")
	errNoRole     = errors.New("a name and a template are needed")
	errNoPlace    = errors.New("a place of a template is needed")
	errPath       = errors.New("must be fields separated by dots, one of them with [name] for a list or [] for a map")
)

// DataError reports that the data of a ControllerRevision holds no template that can be read.
type DataError struct {
	// Name of the revision, empty when only its data was at hand.
	Name string
	// Err is the cause.
	Err error
}

// Error returns the revision and the cause.
func (e *DataError) Error() string {
	if e.Name == "" {
		return "read revision data: " + e.Err.Error()
	}
	return "read revision " + e.Name + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DataError) Unwrap() error { return e.Err }
