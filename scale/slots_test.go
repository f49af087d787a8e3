package scale_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func inOrder(i *scale.Input)            { i.InOrder = true }
func unordered(i *scale.Input)          { i.Priority = &kruise.UpdatePriorityStrategy{} }
func unavailableFirst(i *scale.Input)   { i.UnavailableFirst = true }
func preparingIsUpdated(i *scale.Input) { i.PreparingUpdateIsUpdated = true }
func keep(partition int32) option       { return func(i *scale.Input) { i.Limits.Partition = partition } }

func unavailable(n int32) option { return func(i *scale.Input) { i.Limits.MaxUnavailable = n } }

func scalingOut(n int32) option      { return func(i *scale.Input) { i.Limits.MaxUnavailableScaling = &n } }
func updates(u scale.Updates) option { return func(i *scale.Input) { i.Updates = u } }
func onlyUpdates(i *scale.Input)     { i.UpdateOnly = true }
func noCreate(i *scale.Input)        { i.NoCreate = true }
func preDelete(h *kruise.LifecycleHook) option {
	return func(i *scale.Input) { i.Hooks = &kruise.Lifecycle{PreDelete: h} }
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

func TestSlotsCreate(t *testing.T) {
	testSlots(t, map[string]slotCase{
		"none":                  {"nothing is wanted", "", nil, ""},
		"all":                   {"at once", "---", nil, "create 0+ 1+ 2+"},
		"in order":              {"the first", "---", []option{inOrder}, "create 0+"},
		"in order, the next":    {"when the first is available", "n--", []option{inOrder}, "create 1+"},
		"in order, not yet":     {"the first is not ready", "N--", []option{inOrder}, "(NotAvailable)"},
		"in order, a gap":       {"it is filled before all else", "n-Nn", []option{inOrder}, "create 1+"},
		"in order, terminating": {"its name is taken until it is gone", "nt-", []option{inOrder}, "(WaitingForDeletion)"},
		"limited":               {"two at a time", "-----", []option{scalingOut(2)}, "create 0+ 1+ (ScaleUpLimited)"},
		"limited, one is ready": {"one more", "nN---", []option{scalingOut(2)}, "create 2+ (ScaleUpLimited)"},
		"limited, from three":   {"to five", "nnn-------", []option{scalingOut(2)}, "create 3+ 4+ (ScaleUpLimited)"},
		"limited, later broken": {
			why:     "an instance that comes after it does not hold it back",
			slots:   "-nN",
			options: []option{scalingOut(1)},
			want:    "create 0+",
		},
		"limited, earlier broken": {
			why:     "an instance that comes before it spends the budget",
			slots:   "nN-",
			options: []option{scalingOut(1)},
			want:    "(ScaleUpLimited NotAvailable)",
		},
		"limited, both": {
			why:     "the budget is spent in the order of the slots",
			slots:   "N-N-",
			options: []option{scalingOut(2)},
			want:    "create 1+ (ScaleUpLimited)",
		},
		"limited, none may": {
			why:     "the rest goes on",
			slots:   "oo--",
			options: []option{scalingOut(0), unavailable(3)},
			want:    "update 1 (ScaleUpLimited UpdateLimited)",
		},
		"the first stay old":     {"they come back old", "-oo--", []option{keep(3)}, "create 0 3+ 4+"},
		"a partition above all":  {"all are old", "--", []option{keep(9)}, "create 0 1"},
		"a partition below none": {"none is old", "--", []option{keep(-9)}, "create 0+ 1+"},
		"any may stay old":       {"as many as are to be", "o--n-", []option{keep(2), unordered}, "create 1 2+ 4+"},
		"any, enough are old":    {"none more", "-o-o", []option{keep(2), unordered}, "create 0+ 2+"},
		"any, one is held": {
			why:     "it counts as updated where that is wished",
			slots:   "-uo",
			options: []option{keep(2), unordered, preparingIsUpdated},
			want:    "create 0",
		},
		"any, one is held and old": {"else it does not", "-uo", []option{keep(2), unordered}, "create 0+"},
		"on delete": {
			why:     "they come back updated",
			slots:   "-o-",
			options: []option{keep(3), updates(scale.UpdatesOnDelete)},
			want:    "create 0+ 2+",
		},
		"paused": {
			why:     "the partition holds",
			slots:   "-o-",
			options: []option{keep(2), updates(scale.UpdatesPaused)},
			want:    "create 0 2+",
		},
		"only updates": {"scaling failed", "-o", []option{onlyUpdates, unavailable(2)}, "update 1"},
	})
}

func TestSlotsDelete(t *testing.T) {
	testSlots(t, map[string]slotCase{
		"all":                          {"at once, the last first", "n|nn", nil, "delete 2 1"},
		"by number":                    {"10 is after 9", "|nnnnnnnnnnn", nil, "delete 10 9 8 7 6 5 4 3 2 1 0"},
		"in order":                     {"the last", "n|nn", []option{inOrder}, "delete 2"},
		"in order, the last goes":      {"until it is gone", "n|nt", []option{inOrder}, "(WaitingForDeletion)"},
		"in order, the last is broken": {"it goes", "n|nN", []option{inOrder}, "delete 2"},
		"in order, two are broken": {
			why:     "the first of them may be what the last needs",
			slots:   "n|NN",
			options: []option{inOrder},
			want:    "(NotAvailable)",
		},
		"in order, the first is":    {"the last goes before it", "n|Nn", []option{inOrder}, "delete 2"},
		"in order, a wanted one is": {"none goes", "N|nn", []option{inOrder}, "(NotAvailable)"},
		"in order, one is missing":  {"it comes first", "-|nn", []option{inOrder}, "create 0+"},
		"all, one is missing":       {"never both in one plan", "-|n", nil, "create 0+"},
		"all, creations fail":       {"what is too many may be what they wait for", "-|n", []option{noCreate}, "delete 1"},
		"doomed, creations fail": {
			why:     "what is missing spends the budget",
			slots:   "-xx",
			options: []option{noCreate, keep(3), unavailable(2)},
			want:    "delete 2 (DeleteLimited)",
		},
		"none, creations fail": {
			why: "updates go on", slots: "-oo", options: []option{noCreate, unavailable(2)}, want: "update 2 (UpdateLimited)",
		},
		"all, one is going": {"it is not deleted twice", "n|tn", nil, "delete 2"},
		"doomed": {
			why:     "as many as may be unavailable, from the last",
			slots:   "xxxoox",
			options: []option{keep(6), unavailable(3)},
			want:    "delete 5 2 1 (DeleteLimited)",
		},
		"doomed, and others are not": {
			why: "no budget is left", slots: "oxN", options: []option{keep(2)}, want: "(DeleteLimited Partition NotAvailable)",
		},
		"doomed, paused":           {"later", "xn", []option{updates(scale.UpdatesPaused)}, "(DeleteLimited Paused)"},
		"doomed, in order":         {"when all are available", "xno", []option{inOrder, keep(1)}, "delete 0"},
		"doomed, in order, broken": {"not before", "xN", []option{inOrder, keep(1)}, "(NotAvailable)"},
		"wanted again":             {"the deletion is taken back", "pn", []option{keep(1)}, "restore 0"},
		"on its way to be updated": {"it goes on", "np", nil, "delete 1"},
		"marked not ready": {
			why:     "there is no simple way back",
			slots:   "pn",
			options: []option{keep(1), preDelete(&kruise.LifecycleHook{MarkPodNotReady: true})},
			want:    "delete 0",
		},
		"held": {
			why:   "it waits for the hook",
			slots: "np",
			options: []option{
				preDelete(&kruise.LifecycleHook{LabelsHandler: map[string]string{kruise.LifecycleStateKey: "PreparingDelete"}}),
			},
			want: "(Hooked)",
		},
		"held, in order": {
			why:   "so do the others",
			slots: "n|np",
			options: []option{inOrder, preDelete(&kruise.LifecycleHook{LabelsHandler: map[string]string{
				kruise.LifecycleStateKey: "PreparingDelete",
			}})},
			want: "(Hooked)",
		},
		"finished":                {"the caller has deleted it", "nf", nil, "(WaitingForDeletion)"},
		"finished, in order":      {"its turn has come", "nf-", []option{inOrder}, "delete 1"},
		"finished, in order, two": {"the first of them", "nff", []option{inOrder}, "delete 1"},
		"finished, in order, not yet": {
			why:     "those before it come first",
			slots:   "Nf",
			options: []option{inOrder},
			want:    "(NotAvailable WaitingForDeletion)",
		},
		"finished, in order, too many": {
			why:     "it never becomes ready, so that it waits for none",
			slots:   "n|Nf",
			options: []option{inOrder},
			want:    "delete 2",
		},
		"finished, in order, not last": {"the last goes before it", "n|fn", []option{inOrder}, "delete 2"},
		"let go, in order":             {"it goes", "n|np", []option{inOrder}, "delete 2"},
	})
}

func TestSlotsUpdate(t *testing.T) {
	testSlots(t, map[string]slotCase{
		"one at a time": {"the last", "ooo", nil, "update 2 (UpdateLimited)"},
		"the next":      {"when the last is available", "oon", nil, "update 1 (UpdateLimited)"},
		"not yet":       {"the last is not", "ooN", nil, "(UpdateLimited NotAvailable)"},
		"to the partition": {
			why:     "not below it",
			slots:   "oooooo",
			options: []option{keep(3), unavailable(2)},
			want:    "update 5 4 (UpdateLimited Partition)",
		},
		"to the partition, the rest": {"not below it", "oooonn", []option{keep(3), unavailable(2)}, "update 3 (Partition)"},
		"to the partition, done":     {"nothing is left", "ooonnn", []option{keep(3), unavailable(2)}, "(Partition)"},
		"one is terminating":         {"it is unavailable", "tooooo", []option{unavailable(2)}, "update 5 (UpdateLimited)"},
		"two are": {
			why:     "no budget is left",
			slots:   "totooo",
			options: []option{unavailable(2)},
			want:    "(UpdateLimited WaitingForDeletion)",
		},
		"broken":       {"it goes, as it is reached", "ooO", nil, "update 2 (UpdateLimited)"},
		"broken below": {"it is not reached", "oOo", nil, "(UpdateLimited NotAvailable)"},
		"broken below, repaired first": {
			why: "where that is wished", slots: "oOo", options: []option{unavailableFirst}, want: "update 1 (UpdateLimited)",
		},
		"in order, broken": {"nothing is updated", "ooO", []option{inOrder}, "(UpdateLimited NotAvailable)"},
		"in order, repaired": {
			why:     "where that is wished, and only that",
			slots:   "oOo",
			options: []option{inOrder, unavailableFirst, unavailable(3)},
			want:    "update 1 (UpdateLimited)",
		},
		"in order":   {"as all are available", "oon", []option{inOrder}, "update 1 (UpdateLimited)"},
		"paused":     {"nothing", "oo", []option{updates(scale.UpdatesPaused)}, "(Paused)"},
		"on delete":  {"nothing", "oo", []option{updates(scale.UpdatesOnDelete)}, "(OnDelete)"},
		"never back": {"a raised partition moves nothing", "nnnn", []option{keep(3), unavailable(2)}, ""},
		"any": {
			why:     "two are updated, so two are left",
			slots:   "oooooonnoo",
			options: []option{keep(6), unordered, unavailable(9)},
			want:    "update 9 8 (Partition)",
		},
		"any, more than enough": {
			why: "nothing is left", slots: "nno", options: []option{keep(2), unordered, unavailable(9)}, want: "(Partition)",
		},
		"in order, one too many held": {
			why:   "its hook may take hours, and the others are updated",
			slots: "oo|p",
			options: []option{inOrder, preDelete(&kruise.LifecycleHook{LabelsHandler: map[string]string{
				kruise.LifecycleStateKey: "PreparingDelete",
			}})},
			want: "update 1 (Hooked UpdateLimited)",
		},
		"in order, more too many": {
			why:   "they wait for the one that is held, and updates do not",
			slots: "oo|np",
			options: []option{inOrder, preDelete(&kruise.LifecycleHook{LabelsHandler: map[string]string{
				kruise.LifecycleStateKey: "PreparingDelete",
			}})},
			want: "update 1 (Hooked UpdateLimited)",
		},
		"in order, one too many goes": {"until it is gone", "oo|t", []option{inOrder}, "(UpdateLimited WaitingForDeletion)"},
		"in order, one is held": {
			why: "an update that has begun goes on", slots: "oou", options: []option{inOrder}, want: "update 2 (UpdateLimited)",
		},
		"in order, held and broken": {
			why:     "the held one is unavailable already; no other update begins",
			slots:   "Oou",
			options: []option{inOrder, unavailable(2)},
			want:    "update 2 (UpdateLimited)",
		},
		"any, one is held": {
			why:     "it goes before the others",
			slots:   "uoo",
			options: []option{keep(2), unordered, preparingIsUpdated, unavailable(9)},
			want:    "update 0 (Partition)",
		},
		"in its place, one is held": {
			why:     "without a priority the place counts",
			slots:   "ouo",
			options: []option{keep(1), preparingIsUpdated, unavailable(9)},
			want:    "update 2 1 (Partition)",
		},
	})
	input := slots("oooo")
	unordered(&input)
	input.Priority.WeightPriority = []kruise.UpdatePriorityWeightTerm{{
		Weight: 1, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"first": "yes"}},
	}}
	labelled("first", "yes")(input.Instances[1].Pods[0])
	keep(2)(&input)
	unavailable(4)(&input)
	if got := names(compute(t, input).Update); got != "web-1 web-3" {
		t.Errorf("by weight, then the last: got %s", got)
	}
}

// TestSlotsWait has an instance that becomes available by itself. What is beside the pods, as their volumes, is updated
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

// TestSlotsOfNodes has a slot a node, and any node may keep its old instance: what a DaemonSet without surge does.
func TestSlotsOfNodes(t *testing.T) {
	nodes := []option{unordered, unavailableFirst}
	testSlots(t, map[string]slotCase{
		"two at a time":  {"of five", "ooooo", append(nodes, unavailable(2)), "update 4 3 (UpdateLimited)"},
		"they come back": {"when they are gone", "ooo--", append(nodes, unavailable(2)), "create 3+ 4+"},
		"they are not ready": {
			why:     "so the others wait",
			slots:   "oooNN",
			options: append(nodes, unavailable(2)),
			want:    "(UpdateLimited NotAvailable)",
		},
		"all are broken": {"all go at once", "OOOOO", append(nodes, unavailable(2)), "update 4 3 2 1 0"},
		"some are broken": {
			why:     "they go, and they are the budget",
			slots:   "OoOo",
			options: append(nodes, unavailable(3)),
			want:    "update 2 0 3 (UpdateLimited)",
		},
		"one stays old, one is updated": {
			why:     "of three, the last",
			slots:   "noo",
			options: append(nodes, keep(1), unavailable(9)),
			want:    "update 2 (Partition)",
		},
		"two stay old, one is updated": {
			why:     "of four, the last",
			slots:   "onoo",
			options: append(nodes, keep(2), unavailable(9)),
			want:    "update 3 (Partition)",
		},
		"one is terminating": {"the others go", "ont", append(nodes, unavailable(9)), "update 0"},
		"nodes do not count any more": {
			why: "their pods go without a budget", slots: "ooo|OO", options: append(nodes, unavailable(1)), want: "delete 4 3",
		},
		"once they go": {
			why:     "they hold up nothing",
			slots:   "ooo|tt",
			options: append(nodes, unavailable(1)),
			want:    "update 2 (UpdateLimited)",
		},
	})
}
