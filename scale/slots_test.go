package scale_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// slots reads a notation, a slot a character: o is old, n updated, in capitals not ready; - is missing, t is
// terminating, f has finished, x is old and doomed, p is old and PreparingDelete, u is old and PreparingUpdate, a is
// updated and Outdated, i is that and Impaired, j is old and Impaired. Behind a bar are instances that no slot has.
// They are named web-0, web-1, and so on.
func slots(notation string) scale.Input {
	wanted, _, _ := strings.Cut(notation, "|")
	input := scale.Input{Now: now(), Slots: []string{}, Limits: scale.Limits{MaxUnavailable: 1}}
	for i, c := range strings.ReplaceAll(notation, "|", "") {
		name := fmt.Sprintf("web-%d", i)
		if i < len(wanted) {
			input.Slots = append(input.Slots, name)
		}
		instance := old(name)
		switch c {
		case '-':
			continue
		case 'n', 'N':
			instance.Updated = true
		case 'a', 'i':
			instance.Updated, instance.Outdated, instance.Impaired = true, true, c == 'i'
		case 'j':
			instance.Impaired = true
		case 't', 'f':
			instance.Terminating, instance.Finished, instance.Pods = true, c == 'f', nil
		case 'x':
			instance.MarkedForDeletion = true
		case 'p':
			in(kruise.LifecycleStatePreparingDelete)(instance.Pods[0])
		case 'u':
			in(kruise.LifecycleStatePreparingUpdate)(instance.Pods[0])
		}
		if c == 'O' || c == 'N' {
			notReady(instance.Pods[0])
		}
		input.Instances = append(input.Instances, instance)
	}
	return input
}

type option = func(*scale.Input)

func inOrder(i *scale.Input)      { i.InOrder = true }
func unordered(i *scale.Input)    { i.Priority = &kruise.UpdatePriorityStrategy{} }
func keep(partition int32) option { return func(i *scale.Input) { i.Limits.Partition = partition } }

func unavailable(n int32) option { return func(i *scale.Input) { i.Limits.MaxUnavailable = n } }

func scalingOut(n int32) option      { return func(i *scale.Input) { i.Limits.MaxUnavailableScaling = &n } }
func updates(u scale.Updates) option { return func(i *scale.Input) { i.Updates = u } }
func noCreate(i *scale.Input)        { i.NoCreate = true }
func preDelete(h *kruise.LifecycleHook) option {
	return func(i *scale.Input) { i.Hooks = &kruise.Lifecycle{PreDelete: h} }
}

// surge has names for it behind those of the slots.
func surge(n int32) option {
	return func(i *scale.Input) {
		i.Limits.MaxSurge = n
		for k := range 4 {
			i.SurgeSlots = append(i.SurgeSlots, fmt.Sprintf("web-%d", len(i.Slots)+k))
		}
	}
}

type slotCase struct {
	why     string
	slots   string
	options []option
	want    string
}

func testSlots(t *testing.T, cases map[string]slotCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			input := slots(c.slots)
			for _, o := range c.options {
				o(&input)
			}
			if got := strings.ReplaceAll(story(compute(t, input)), "web-", ""); got != c.want {
				t.Errorf("%s: %s: want %q, got %q", c.slots, c.why, c.want, got)
			}
		})
	}
}

// TestSlotsNotes has plans that say why something waits. What plans do is compared with the oracle.
func TestSlotsNotes(t *testing.T) {
	one := []option{surge(1), unavailable(0)}
	held := preDelete(&kruise.LifecycleHook{LabelsHandler: map[string]string{kruise.LifecycleStateKey: "PreparingDelete"}})
	paused := updates(scale.UpdatesPaused)
	testSlots(t, map[string]slotCase{
		"by number":             {"10 is after 9", "|nnnnnnnnnnn", nil, "delete 10 9 8 7 6 5 4 3 2 1 0"},
		"in order, not yet":     {"the first is not ready", "N--", []option{inOrder}, "(NotAvailable)"},
		"in order, terminating": {"its name is taken", "nt-", []option{inOrder}, "(WaitingForDeletion)"},
		"limited":               {"two at a time", "-----", []option{scalingOut(2)}, "create 0+ 1+ (ScaleUpLimited)"},
		"limited, earlier broken": {
			"it spends the budget", "nN-", []option{scalingOut(1)}, "(ScaleUpLimited NotAvailable)",
		},
		"doomed": {"from the last", "xxo", []option{keep(3)}, "delete 1 (DeleteLimited)"},
		"doomed, others are not": {
			"no budget is left", "oxN", []option{keep(2)}, "(DeleteLimited Partition NotAvailable)",
		},
		"doomed, paused":         {"later", "xn", []option{paused}, "(DeleteLimited Paused)"},
		"doomed, creations fail": {"none comes", "-xx", []option{noCreate, keep(3)}, "(DeleteLimited)"},
		"held":                   {"it waits for the hook", "np", []option{held}, "(Hooked)"},
		"held, in order":         {"so do the others", "n|np", []option{inOrder, held}, "(Hooked)"},
		"finished":               {"the caller has deleted it", "nf", nil, "(WaitingForDeletion)"},
		"updates":                {"one at a time", "ooo", nil, "update 2 (UpdateLimited)"},
		"updates, to the partition": {
			"the rest stays", "oooonn", []option{keep(3), unavailable(2)}, "update 3 (Partition)",
		},
		"updates, one broken below": {"it is not reached", "oOo", nil, "(UpdateLimited NotAvailable)"},
		"updates, two terminating": {
			"no budget is left", "totooo", []option{unavailable(2)}, "(UpdateLimited WaitingForDeletion)",
		},
		"updates, one too many held": {
			"hours may pass", "oo|p", []option{inOrder, held}, "update 1 (Hooked UpdateLimited)",
		},
		"on delete":      {"nothing", "oo", []option{updates(scale.UpdatesOnDelete)}, "(OnDelete)"},
		"surge, not yet": {"it is not available", "ooo|N", one, "(UpdateLimited NotAvailable)"},
		"surge, paused": {
			"it makes up for the broken one", "ooN|n", append(one, paused), "(DeleteLimited Paused NotAvailable)",
		},
		"surge, rolled back": {"the wrong one makes up", "nnO|o", one, "update 2 (DeleteLimited)"},
		"surge, at most": {
			"both make up for slots", "ooNN|nn", one, "(DeleteLimited UpdateLimited NotAvailable)",
		},
		"surge, no place": {"one without a slot has it", "ooo|---tt", one, "(UpdateLimited WaitingForDeletion)"},
		"surge, held":     {"it takes the place", "oon|p", append(one, held), "(Hooked UpdateLimited)"},
		"surge, limited": {
			"it counts", "oNo", append(one, scalingOut(1)), "(ScaleUpLimited UpdateLimited NotAvailable)",
		},
		"surge, creations fail": {"none comes", "oo", append(one, noCreate), "(UpdateLimited)"},
		"surge, impaired":       {"it does not make up for a slot", "oo|i", one, "(UpdateLimited)"},
		"surge, impaired, done": {"it goes, as it does not serve", "nN|i", []option{surge(0)}, "delete 2"},
	})
}

// What is beside the pods, as their volumes, is updated
// and spends of the budget as pods do. The number of instances does not depend on it.
func TestSlotsBeside(t *testing.T) {
	testSlots(t, map[string]slotCase{
		"outdated":            {"the last one is updated although its pod is", "aaa", nil, "update 2 (UpdateLimited)"},
		"below the partition": {"it stays", "aaa", []option{keep(3)}, ""},
		"any, below":          {"as many as are to be", "aaa", []option{keep(2), unordered}, "update 2"},
		"impaired":            {"it spends the budget, and goes on", "aia", nil, "update 1 (UpdateLimited)"},
		"impaired, old":       {"its update may be what it needs", "ojo", nil, "update 1 (UpdateLimited)"},
		"impaired, room":      {"another one fits in", "aia", []option{unavailable(2)}, "update 1 2 (UpdateLimited)"},
		"impaired, in order":  {"it goes on, the others wait", "oji", []option{inOrder}, "update 2 (UpdateLimited)"},
		"impaired, marked":    {"no other one is deleted", "xi", nil, "update 1 (DeleteLimited UpdateLimited)"},
		"created":             {"the next one does not wait for it", "i-", []option{inOrder}, "create 1+"},
		"paused":              {"nothing is updated", "ai", []option{updates(scale.UpdatesPaused)}, "(Paused)"},
		"on delete":           {"nothing is updated", "ai", []option{updates(scale.UpdatesOnDelete)}, "(OnDelete)"},
	})
}

// TestSlotsWait has an instance that becomes available by itself.
func TestSlotsWait(t *testing.T) {
	input := slots("nn-")
	input.InOrder, input.MinReadySeconds = true, 60
	readySince(50 * time.Second)(input.Instances[1].Pods[0])
	plan := compute(t, input)
	if len(plan.Create) > 0 || plan.RequeueAfter != 10*time.Second || plan.Notes[0].Object != "web-1" {
		t.Errorf("web-2 waits 10s for web-1: got %+v", plan)
	}
	input.InOrder = false
	if got := births(compute(t, input).Create); got != "web-2+" {
		t.Errorf("it does not without an order: got %s", got)
	}
}
