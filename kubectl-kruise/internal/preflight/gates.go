package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
)

// since has the minor version of the reference in which a gate appeared, where that is not 1.5.
func since() map[gates.Gate]int {
	return map[gates.Gate]int{
		gates.EnhancedLivenessProbe:                     7,
		gates.RecreatePodWhenChangeVCTInCloneSetGate:    7,
		gates.StatefulSetStartOrdinal:                   7,
		gates.EnableExternalCerts:                       7,
		gates.PodIndexLabel:                             7,
		gates.StatefulSetAutoResizePVCGate:              8,
		gates.ForceDeleteTimeoutExpectationGate:         8,
		gates.InPlaceWorkloadVerticalScaling:            8,
		gates.EnablePodProbeMarkerOnServerless:          8,
		gates.EnableSortSidecarContainerByName:          9,
		gates.InPlacePodVerticalScaling:                 9,
		gates.DefaultHostNetworkHostPortsInPodTemplates: 10,
		gates.DaemonSetPruneIneligibleNodes:             10,
	}
}

// effective are the gates that a minor version of the reference has on, with a list of its flag.
func effective(list string, minor int) (map[gates.Gate]bool, error) {
	// Until 1.7 the protection of deletions was on by default, and of the stage alpha: the list comes later, and wins.
	if minor < 8 {
		protection := "ResourcesDeletionProtection=true,"
		if all := settingOf(list, "AllAlpha"); all != "" {
			protection = "ResourcesDeletionProtection=" + all + ","
		}
		list = protection + list
	}
	parsed, err := gates.Parse(list)
	if err != nil {
		return nil, err
	}
	on := map[gates.Gate]bool{}
	for _, g := range gates.All() {
		on[g] = parsed.On(g) && since()[g] <= minor && g != gates.NativeRollouts
	}
	return on, nil
}

// settingOf returns what a list says of a name, the later value.
func settingOf(list, name string) string {
	value := ""
	for item := range strings.SplitSeq(list, ",") {
		key, v, _ := strings.Cut(strings.TrimSpace(item), "=")
		if strings.TrimSpace(key) == name {
			value = strings.TrimSpace(v)
		}
	}
	return value
}

// flagOf returns the value of a flag of the arguments, the later one.
func flagOf(args []string, name string) (value string, found bool) {
	for i, arg := range args {
		key, v, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if key != name || !strings.HasPrefix(arg, "-") {
			continue
		}
		if !inline && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			v = args[i+1]
		}
		value, found = v, true
	}
	return value, found
}

// settings are what to set, so that the manager does what the reference does.
type settings struct {
	// gates is the value of featureGates.
	gates string
	// changed are gates that the same list would set otherwise.
	changed []string
	// notes are flags without effect, and those that do not exist.
	notes []string
	on    map[gates.Gate]bool
}

// choose says which gates to set, for the oldest version that it may be.
func choose(f Facts, in installation) settings {
	list := ""
	if f.Manager != nil {
		list, _ = flagOf(f.Manager.Args, "feature-gates")
	}
	var s settings
	minor := min(in.low, in.high) // the older one where they contradict each other
	on, err := effective(list, minor)
	if err != nil {
		s.notes = append(s.notes, fmt.Sprintf("--feature-gates=%s: %v", list, err))
		on, _ = effective("", minor)
	}
	s.on = on
	same, err := gates.Parse(list)
	if err != nil {
		same = gates.Default()
	}
	var set []string
	for _, g := range gates.All() {
		if on[g] != gates.Default().On(g) && g != gates.NativeRollouts && since()[g] <= minor {
			set = append(set, fmt.Sprintf("%s=%t", g, on[g]))
		}
		if on[g] != same.On(g) && since()[g] <= minor {
			s.changed = append(s.changed, fmt.Sprintf("%s: %s there, %s here with the same "+
				"list", g, word(on[g]), word(same.On(g))))
		}
	}
	s.gates = strings.Join(set, ",")
	if f.Manager != nil {
		s.notes = append(s.notes, flags(f.Manager.Args)...)
	}
	return s
}

func word(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// flags says which arguments of the manager have no effect, and which must be taken out.
func flags(args []string) []string {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return strings.Contains(arg, "feature-gates")
	})
	o, err := options.Parse(args, func(string) string { return "" })
	notes := slices.DeleteFunc(slices.Clone(o.Notes), func(n string) bool { return strings.HasPrefix(n, "--log") })
	if err != nil {
		notes = append(notes, "take out: "+err.Error())
	}
	return notes
}
