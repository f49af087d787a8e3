package scale_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/scale"
)

// pinned are instances and slots by name; those of slots without their prefix.
func pinned(names ...string) option {
	return func(i *scale.Input) {
		for _, name := range names {
			i.Pinned = append(i.Pinned, "web-"+name)
		}
	}
}

func TestPinnedSlots(t *testing.T) {
	testSlots(t, map[string]slotCase{
		"first": {
			why: "before the last", slots: "ooo", options: []option{pinned("0")}, want: "update 0 (UpdateLimited)",
		},
		"below the partition": {
			why: "it has no part in it", slots: "ooo", options: []option{pinned("0"), keep(3)}, want: "update 0 (Partition)",
		},
		"has its own": {
			why: "nothing is left", slots: "noo", options: []option{pinned("0"), keep(3)}, want: "(Partition)",
		},
		"the others, in order": {
			why:     "the places stay what they are",
			slots:   "noo",
			options: []option{pinned("0"), keep(2)},
			want:    "update 2 (Partition)",
		},
		"created": {
			why: "at its own revision", slots: "-oo", options: []option{pinned("0"), keep(3)}, want: "create 0+",
		},
		"created, any": {
			why:     "it is none of those that stay",
			slots:   "--o",
			options: []option{pinned("0"), keep(2), unordered},
			want:    "create 0+ 1",
		},
		"created, on delete": {
			why: "as all", slots: "-oo", options: []option{pinned("0"), updates(scale.UpdatesOnDelete)}, want: "create 0+",
		},
		"any, all others stay": {
			why:     "the partition is clamped",
			slots:   "noo",
			options: []option{pinned("0"), keep(3), unordered},
			want:    "(Partition)",
		},
		"any, two stay": {
			why: "of two others", slots: "noo", options: []option{pinned("0"), keep(2), unordered}, want: "(Partition)",
		},
		"any, one stays": {
			why:     "of two others",
			slots:   "noo",
			options: []option{pinned("0"), keep(1), unordered},
			want:    "update 2 (Partition)",
		},
		"any, its own does count": {
			why: "for nothing", slots: "nno", options: []option{pinned("0"), keep(1), unordered}, want: "(Partition)",
		},
		"paused": {
			why:     "it waits as all",
			slots:   "ono",
			options: []option{pinned("0"), keep(3), updates(scale.UpdatesPaused)},
			want:    "(Paused Partition)",
		},
		"in order": {
			why:     "when all are available",
			slots:   "oN",
			options: []option{pinned("0"), keep(2), inOrder},
			want:    "(UpdateLimited NotAvailable)",
		},
		"no budget": {
			why:     "what is broken goes all the same",
			slots:   "ooO",
			options: []option{pinned("0")},
			want:    "update 2 (UpdateLimited)",
		},
		"not there": {"the name need not exist", "nn", []option{pinned("7")}, ""},
		"held": {
			why: "it is deleted to be updated", slots: "pn", options: []option{pinned("0"), keep(2)}, want: "delete 0",
		},
		"held, any": {
			why:     "the others stay, so that the deletion is taken back",
			slots:   "opn",
			options: []option{pinned("0"), keep(2), unordered},
			want:    "restore 1",
		},
		"surge": {
			why:     "it needs it as all",
			slots:   "onn",
			options: []option{pinned("0"), keep(3), surge(1), unavailable(0)},
			want:    "create 3+",
		},
	})
}

func TestPinned(t *testing.T) {
	of := func(notation string, l scale.Limits, names ...string) scale.Input {
		return scale.Input{Instances: instances(t, notation), Limits: l, Pinned: names}
	}
	canary := scale.Limits{Replicas: 10, Partition: 8, MaxUnavailable: 1}
	testNumbers(t, numbers{
		"eight of ten stay": {
			"one is pinned, so that one of the others is updated", of("10O", canary, "00O"),
			"update 00O (UpdateLimited Partition)",
		},
		"the pinned one is done": {
			"one of the others is left", of("1N 9O", canary, "00N"), "update 01O (Partition)",
		},
		"both are": {"nothing is left", of("2N 8O", canary, "00N"), "(Partition)"},
		"more stay than there are others": {
			"all stay", of("1N 9O", scale.Limits{Replicas: 10, Partition: 10, MaxUnavailable: 1}, "00N"), "(Partition)",
		},
		"none goes back": {
			"it is none of those that are too new", of("1N 9O", scale.Limits{Replicas: 10, Partition: 9}, "00N"), "(Partition)",
		},
		"others go back": {
			why:   "the pinned one goes forward, and first",
			input: of("1O 1N 1N", scale.Limits{Replicas: 3, Partition: 2, MaxUnavailable: 3}, "00O"),
			want:  "update 00O 01N 02N back",
		},
		"no budget": {
			"what is broken goes all the same", of("1O 1O!", scale.Limits{Replicas: 2, MaxUnavailable: 1}, "00O"),
			"update 01O (UpdateLimited)",
		},
		"surge": {
			"it needs it as all", of("1O 2N", scale.Limits{Replicas: 3, MaxSurge: 1}, "00O"), "create +",
		},
		"surge, done": {
			"one of the others is too many", of("4N", scale.Limits{Replicas: 3, MaxSurge: 1}, "00N"), "delete 01N",
		},
		"scale in": {
			"it is the last to go", of("1N! 3N", scale.Limits{Replicas: 1, MaxUnavailable: 9}, "00N"), "delete 01N 02N 03N",
		},
		"scale in, more are pinned": {
			"those have to go, too", of("1O 2N", scale.Limits{Replicas: 1, MaxUnavailable: 9}, "01N", "02N"), "delete 00O 01N",
		},
		"chosen": {
			"it is replaced by another one", of("1Nx 1N", scale.Limits{Replicas: 2, MaxSurge: 1}, "00N"), "create +",
		},
		"chosen, not yet": {
			"it is not updated before that", of("1Ox 1N!", scale.Limits{Replicas: 2, MaxUnavailable: 1}, "00O"),
			"(DeleteLimited NotAvailable)",
		},
		"chosen, of old ones": {
			"the other one is one of those that stay",
			of("1Nx 1O", scale.Limits{Replicas: 2, Partition: 2, MaxSurge: 1}, "00N"), "create ",
		},
		"missing": {"what comes is not pinned", of("1O", scale.Limits{Replicas: 2, Partition: 2}, "01O"), "create "},
	})
}
