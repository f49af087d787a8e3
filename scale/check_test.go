package scale_test

import (
	"errors"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

func TestIgnoredFields(t *testing.T) {
	slots := []string{"a", "b"}
	scatter := kruise.UpdateScatterStrategy{{Key: "k", Value: "v"}}
	nodes := map[string]map[string]string{"n": {"zone": "z"}}
	cases := map[string]struct {
		why   string
		input scale.Input
		want  string
	}{
		"plain": {
			"nothing is ignored",
			scale.Input{
				Limits:     scale.Limits{Replicas: 2, MaxSurge: 1, NoRollback: true, ExcludePreparingDelete: true},
				SpreadKeys: []string{"zone"},
				NodeLabels: nodes,
				Scatter:    scatter,
			},
			"",
		},
		"slots": {
			"nothing is ignored",
			scale.Input{Slots: slots, InOrder: true, Limits: scale.Limits{Partition: 1, MaxUnavailable: 1}},
			"",
		},
		"slots and their number": {
			"the number is the right one",
			scale.Input{Slots: slots, Limits: scale.Limits{Replicas: 2, MaxUnavailableScaling: ptr.To[int32](1)}},
			"",
		},
		"scatter with priority": {
			"any slot may keep the old revision",
			scale.Input{Slots: slots, Scatter: scatter, Priority: &kruise.UpdatePriorityStrategy{}},
			"",
		},
		"empty node labels": {"as good as none", scale.Input{NodeLabels: map[string]map[string]string{}}, ""},
		"order without slots": {
			"instances are alike", scale.Input{InOrder: true}, "InOrder must be false without Slots",
		},
		"node labels alone": {
			"no key asks for them", scale.Input{NodeLabels: nodes}, "NodeLabels must be empty without SpreadKeys",
		},
		"another number of slots": {
			"the slots count",
			scale.Input{Slots: slots, Limits: scale.Limits{Replicas: 3}},
			"Limits.Replicas must be 0 or the number of Slots, 2",
		},
		"surge": {
			"the names for it are missing",
			scale.Input{Slots: slots, Limits: scale.Limits{MaxSurge: 1}},
			"Limits.MaxSurge must be 0 with Slots and without SurgeSlots",
		},
		"surge and its names": {
			"nothing is ignored",
			scale.Input{Slots: slots, SurgeSlots: []string{"c"}, Limits: scale.Limits{MaxSurge: 1}},
			"",
		},
		"names for surge alone": {
			"limits change, and the names stay", scale.Input{Slots: slots, SurgeSlots: []string{"c"}}, "",
		},
		"names for surge without slots": {
			"instances are alike", scale.Input{SurgeSlots: []string{"c"}}, "SurgeSlots must be empty without Slots",
		},
		"surge in order": {
			"all slots wait for instances beyond them",
			scale.Input{Slots: slots, SurgeSlots: []string{"c"}, InOrder: true, Limits: scale.Limits{MaxSurge: 1}},
			"Limits.MaxSurge must be 0 with InOrder",
		},
		"names for surge in order": {
			"all slots wait for instances beyond them",
			scale.Input{Slots: slots, SurgeSlots: []string{"c"}, InOrder: true},
			"SurgeSlots must be empty with InOrder",
		},
		"no rollback": {
			"slots never go back",
			scale.Input{Slots: slots, Limits: scale.Limits{NoRollback: true}},
			"Limits.NoRollback must be false with Slots",
		},
		"exclude": {
			"a slot is taken until it is free",
			scale.Input{Slots: slots, Limits: scale.Limits{ExcludePreparingDelete: true}},
			"Limits.ExcludePreparingDelete must be false with Slots",
		},
		"scaling in order": {
			"one at a time",
			scale.Input{Slots: slots, InOrder: true, Limits: scale.Limits{MaxUnavailableScaling: ptr.To[int32](1)}},
			"Limits.MaxUnavailableScaling must be nil with InOrder",
		},
		"creations alone": {
			"instances are alike", scale.Input{NoCreate: true}, "NoCreate must be false without Slots",
		},
		"creations in order": {
			"nothing is deleted before all slots are filled",
			scale.Input{Slots: slots, InOrder: true, NoCreate: true},
			"NoCreate must be false with InOrder",
		},
		"spread": {
			"no slot is chosen for its node",
			scale.Input{Slots: slots, SpreadKeys: []string{"zone"}},
			"SpreadKeys must be empty with Slots",
		},
		"scatter without priority": {
			"slots go in their order",
			scale.Input{Slots: slots, Scatter: scatter},
			"Scatter must be empty with Slots and without Priority",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scale.Plan(c.input)
			var input *scale.InputError
			switch {
			case c.want == "" && err != nil, c.want != "" && !errors.As(err, &input):
				t.Errorf("%s: %v", c.why, err)
			case c.want != "" && err.Error() != c.want:
				t.Errorf("%s: want %q, got %q", c.why, c.want, err)
			}
		})
	}
}
