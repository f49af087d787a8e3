package revision

import (
	"errors"
	"fmt"
)

var (
	errNoTemplate = errors.New("spec.template is missing")
	errNoRole     = errors.New("a name and a template are needed")
	errNoPlace    = errors.New("a place of a template is needed")
	errPath       = errors.New("must be fields separated by dots, one of them with [name] for a list or [] for a map")
)

// unreadable returns the error of data without a template that can be read.
func unreadable(err error) error { return fmt.Errorf("read revision data: %w", err) }
