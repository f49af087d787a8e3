package scale_test

import (
	"errors"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// TestPlanRefuses has fields that the mode of an input ignores, and names that are not unique.
func TestPlanRefuses(t *testing.T) {
	slots, more := []string{"a", "b"}, []string{"c"}
	scatter := kruise.UpdateScatterStrategy{{Key: "k", Value: "v"}}
	nodes := map[string]map[string]string{"n": {"zone": "z"}}
	one := ptr.To[int32](1)
	const names = "Instances must have a name each"
	for want, inputs := range map[string][]scale.Input{
		"": {
			{
				Limits:     scale.Limits{Replicas: 2, MaxSurge: 1, NoRollback: true, ExcludePreparingDelete: true},
				SpreadKeys: []string{"zone"}, NodeLabels: nodes, Scatter: scatter,
			},
			{Slots: slots, InOrder: true, Limits: scale.Limits{Partition: 1, MaxUnavailable: 1}},
			{Slots: slots, Limits: scale.Limits{Replicas: 2, MaxUnavailableScaling: one}},
			{Slots: slots, Scatter: scatter, Priority: &kruise.UpdatePriorityStrategy{}},
			{Slots: slots, SurgeSlots: more, Limits: scale.Limits{MaxSurge: 1}},
			{Slots: slots, SurgeSlots: more}, // limits change, and the names stay
			{NodeLabels: map[string]map[string]string{}},
		},
		"InOrder must be false without Slots":                         {{InOrder: true}},
		"NodeLabels must be empty without SpreadKeys":                 {{NodeLabels: nodes}},
		"Limits.Replicas must be 0 or the number of Slots, 2":         {{Slots: slots, Limits: scale.Limits{Replicas: 3}}},
		"Limits.MaxSurge must be 0 with Slots and without SurgeSlots": {{Slots: slots, Limits: scale.Limits{MaxSurge: 1}}},
		"SurgeSlots must be empty without Slots":                      {{SurgeSlots: more}},
		"Limits.MaxSurge must be 0 with InOrder": {
			{Slots: slots, SurgeSlots: more, InOrder: true, Limits: scale.Limits{MaxSurge: 1}},
		},
		"SurgeSlots must be empty with InOrder":      {{Slots: slots, SurgeSlots: more, InOrder: true}},
		"Limits.NoRollback must be false with Slots": {{Slots: slots, Limits: scale.Limits{NoRollback: true}}},
		"Limits.ExcludePreparingDelete must be false with Slots": {
			{Slots: slots, Limits: scale.Limits{ExcludePreparingDelete: true}},
		},
		"Limits.MaxUnavailableScaling must be nil with InOrder": {
			{Slots: slots, InOrder: true, Limits: scale.Limits{MaxUnavailableScaling: one}},
		},
		"NoCreate must be false without Slots":                  {{NoCreate: true}},
		"NoCreate must be false with InOrder":                   {{Slots: slots, InOrder: true, NoCreate: true}},
		"SpreadKeys must be empty with Slots":                   {{Slots: slots, SpreadKeys: []string{"zone"}}},
		"Scatter must be empty with Slots and without Priority": {{Slots: slots, Scatter: scatter}},
		names: {
			{Instances: []scale.Instance{old("")}, Slots: slots},
			{Instances: []scale.Instance{old("a"), old("a")}, Slots: slots},
			{Instances: []scale.Instance{old("a"), old("a")}},
		},
		`Slots must not have "" twice, nor an empty name`:       {{Slots: []string{"a", ""}}},
		`Slots must not have "a" twice, nor an empty name`:      {{Slots: []string{"a", "a"}}},
		`SurgeSlots must not have "c" twice, nor an empty name`: {{Slots: slots, SurgeSlots: []string{"c", "c"}}},
		`SurgeSlots must not have "" twice, nor an empty name`:  {{Slots: slots, SurgeSlots: []string{""}}},
	} {
		for i, input := range inputs {
			_, err := scale.Plan(input)
			var refused *scale.InputError
			if want == "" && err != nil || want != "" && (!errors.As(err, &refused) || err.Error() != want) {
				t.Errorf("input %d: want %q, got %v", i, want, err)
			}
		}
	}
}
