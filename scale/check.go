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
func (in *Input) check() error {
	if len(in.NodeLabels) > 0 && len(in.SpreadKeys) == 0 {
		return &InputError{"NodeLabels", "must be empty without SpreadKeys"}
	}
	if in.Slots == nil {
		return in.checkAlike()
	}
	const withSlots = " with Slots"
	for _, f := range []struct {
		field, reason string
		ignored       bool
	}{
		{
			"Limits.Replicas", fmt.Sprintf("must be 0 or the number of Slots, %d", len(in.Slots)),
			in.Limits.Replicas != 0 && int(in.Limits.Replicas) != len(in.Slots),
		},
		{"Limits.MaxSurge", "must be 0 with InOrder", in.Limits.MaxSurge != 0 && in.InOrder},
		{"SurgeSlots", "must be empty with InOrder", len(in.SurgeSlots) > 0 && in.InOrder},
		{
			"Limits.MaxSurge", "must be 0 with Slots and without SurgeSlots",
			in.Limits.MaxSurge != 0 && len(in.SurgeSlots) == 0,
		},
		{"Limits.NoRollback", "must be false" + withSlots, in.Limits.NoRollback},
		{"Limits.ExcludePreparingDelete", "must be false" + withSlots, in.Limits.ExcludePreparingDelete},
		{"Limits.MaxUnavailableScaling", "must be nil with InOrder", in.Limits.MaxUnavailableScaling != nil && in.InOrder},
		{"NoCreate", "must be false with InOrder", in.NoCreate && in.InOrder},
		{"SpreadKeys", "must be empty" + withSlots, len(in.SpreadKeys) > 0},
		{"Scatter", "must be empty with Slots and without Priority", len(in.Scatter) > 0 && in.Priority == nil},
	} {
		if f.ignored {
			return &InputError{f.field, f.reason}
		}
	}
	return nil
}

// checkAlike returns an *InputError for the first field that needs Slots.
func (in *Input) checkAlike() error {
	switch {
	case in.InOrder:
		return &InputError{"InOrder", "must be false without Slots"}
	case in.NoCreate:
		return &InputError{"NoCreate", "must be false without Slots"}
	case len(in.SurgeSlots) > 0:
		return &InputError{"SurgeSlots", "must be empty without Slots"}
	}
	return nil
}
