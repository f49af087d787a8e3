package workloads

import "strings"

const (
	// longestPod is how many characters the name of a pod has at most, so that it is a host name.
	longestPod = 63
	// longestStem leaves room for a dash and the ten characters that distinguish pods.
	longestStem = longestPod - 11
)

// OwnerOfRevision is the part of a name before the last dash: the name of the workload of a revision.
func OwnerOfRevision(name string) (string, bool) {
	dash := strings.LastIndexByte(name, '-')
	return name[:max(dash, 0)], dash > 0
}

// StemOf is what the names of pods of a workload begin with, before a dash: the name of the workload, or its first
// characters. A dot is left out where the dash would follow it.
func StemOf(workload string) string {
	return strings.TrimRight(workload[:min(len(workload), longestStem)], ".")
}

// OwnerOfPod is the stem in the name of a pod, see StemOf. A name of the full length may have more of the name of the
// workload, and no dash: the API server generates such names.
func OwnerOfPod(pod string) (string, bool) {
	if len(pod) == longestPod {
		return StemOf(pod), true
	}
	name, ok := OwnerOfRevision(pod)
	return StemOf(name), ok
}
