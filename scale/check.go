package scale

import "fmt"

// InputError reports a field of the input that has no effect in the chosen mode. Plan returns the error instead of
// ignoring what the caller asked for.
type InputError struct {
	// Field is the path of the field in Input.
	Field string
	// Reason is what the field must be.
	Reason string
}

// Error returns the field and the reason.
func (e *InputError) Error() string { return e.Field + " " + e.Reason }

// check returns an *InputError for the first field that the mode ignores.
func (in *Input) check() error { //nolint:gocyclo // a table of conditions
	slots, ordered, l := in.Slots != nil, in.InOrder && in.Slots != nil, &in.Limits
	for _, f := range []struct {
		field, reason string
		ignored       bool
	}{
		{"NodeLabels", "must be empty without SpreadKeys", len(in.NodeLabels) > 0 && len(in.SpreadKeys) == 0},
		{"InOrder", "must be false without Slots", in.InOrder && !slots},
		{"NoCreate", "must be false without Slots", in.NoCreate && !slots},
		{"SurgeSlots", "must be empty without Slots", len(in.SurgeSlots) > 0 && !slots},
		{
			"Limits.Replicas", fmt.Sprintf("must be 0 or the number of Slots, %d", len(in.Slots)),
			slots && l.Replicas != 0 && int(l.Replicas) != len(in.Slots),
		},
		{"Limits.MaxSurge", "must be 0 with InOrder", l.MaxSurge != 0 && ordered},
		{"SurgeSlots", "must be empty with InOrder", len(in.SurgeSlots) > 0 && ordered},
		{
			"Limits.MaxSurge", "must be 0 with Slots and without SurgeSlots",
			slots && l.MaxSurge != 0 && len(in.SurgeSlots) == 0,
		},
		{"Limits.NoRollback", "must be false with Slots", slots && l.NoRollback},
		{"Limits.ExcludePreparingDelete", "must be false with Slots", slots && l.ExcludePreparingDelete},
		{"Limits.MaxUnavailableScaling", "must be nil with InOrder", l.MaxUnavailableScaling != nil && ordered},
		{"NoCreate", "must be false with InOrder", in.NoCreate && ordered},
		{"SpreadKeys", "must be empty with Slots", slots && len(in.SpreadKeys) > 0},
		{"Scatter", "must be empty with Slots and without Priority", slots && len(in.Scatter) > 0 && in.Priority == nil},
	} {
		if f.ignored {
			return &InputError{f.field, f.reason}
		}
	}
	return nil
}
